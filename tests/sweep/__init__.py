"""The crash-point sweep: a job's whole life, broken at every statement in every way there is."""
