"""What the three seeds give a job author, a test for each; docs/mapping.md lists all."""
