"""The connections that workers take, against those that the server gives."""

from __future__ import annotations

from collections.abc import Iterator

from django_leasequeue.core.inspection.jobs import present
from django_leasequeue.doctor.case import Case
from django_leasequeue.doctor.findings import Finding, Kind

__all__ = ["connections_left"]

TOO_MANY = Kind(
    "leasequeue.W019",
    "connections",
    "Run fewer workers or children (PROCESSES, THREADS), or raise the limit.",
)
#: Of a worker's control process: one to claim and settle, one to renew.
_CONTROL = 2
#: Workers that were seen within so many seconds are there.
_SEEN = 60.0
#: The part of the limit that workers may take; web processes and people need some as well.
_SHARE = 0.8


def connections_left(case: Case) -> Iterator[Finding]:
    """The workers that run, or one with these settings, need nearly all connections there are."""
    limit = case.server.connection_limit(case.connection, case.variables)
    if limit is None:
        return
    workers, children = present(case.connection, _SEEN)
    threads = case.conf.THREADS
    running = workers * _CONTROL + children * threads
    one = _CONTROL + case.conf.PROCESSES * threads
    if max(running, one) > limit[0] * _SHARE:
        yield TOO_MANY.found(
            f"{limit[1]} leaves this account {limit[0]} connections. {workers} workers run with "
            f"{children} children and need up to {running}; one with the project's settings "
            f"needs {one}."
        )
