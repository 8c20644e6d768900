"""Other queues' tables, as far as an import reads them, where those packages are not installed."""
