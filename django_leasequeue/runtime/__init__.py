"""The worker: processes, threads and time; it reaches the database through the core only."""
