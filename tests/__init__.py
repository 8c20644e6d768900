"""The suite: one set of tests, run whole on every database."""
