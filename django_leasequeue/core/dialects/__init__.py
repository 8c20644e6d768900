"""The dialects: what differs between the databases. `core.dialect` chooses among them."""
