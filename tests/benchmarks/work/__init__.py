"""The Django app of the benchmarks: what their jobs do, and the tables that they need."""
