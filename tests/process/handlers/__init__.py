"""A Django app of handlers that wait, fail and crash when a test says so; it has no tables."""
