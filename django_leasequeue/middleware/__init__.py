"""Middleware: code around every enqueue and every attempt, named in LEASEQUEUE["MIDDLEWARE"].

What `on_enqueue` puts into a job's context comes back to `around` in the worker.
"""

from __future__ import annotations

from django_leasequeue.middleware.locale import LocaleMiddleware
from django_leasequeue.middleware.one_at_a_time import OneAtATime, only_one
from django_leasequeue.middleware.opentelemetry import OpenTelemetryMiddleware
from django_leasequeue.middleware.sentry import SentryMiddleware

__all__ = [
    "LocaleMiddleware",
    "OneAtATime",
    "OpenTelemetryMiddleware",
    "SentryMiddleware",
    "only_one",
]
