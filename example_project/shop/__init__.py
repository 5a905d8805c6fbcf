"""The shop: its tables, the workflow that fulfils an order, and the pages around it."""
