"""The proof: a judge that reads only the tables and a ledger, and campaigns that try to make it find something."""
