"""The soak: does a worker that runs for long stay as it is? `make soak` runs it."""
