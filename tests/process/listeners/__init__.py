"""An app whose receivers note every signal of the queue in the file that SIGNALS_FILE names."""
