"""What the three seeds give a job author, a test for each; FEATURES.md in tests/field lists all."""
