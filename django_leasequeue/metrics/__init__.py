"""Metrics for Prometheus: what workers count, and how much lies in the queues (extra `metrics`)."""
