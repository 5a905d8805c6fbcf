"""Random programs: workflows that chance makes, run by worker processes that a nemesis kills, stops and cuts off."""
