"""The judges, by what they look at. Each yields violations; none calls the engine."""
