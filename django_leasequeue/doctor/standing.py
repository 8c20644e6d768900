"""Jobs that stand where nobody will ever take them from, found by a few index dives."""

from __future__ import annotations

from collections.abc import Iterator

from django_leasequeue.core.inspection import jobs
from django_leasequeue.doctor.case import Case
from django_leasequeue.doctor.findings import Finding, Kind
from django_leasequeue.statuses import Status

__all__ = ["expired_leases", "no_deadlines", "unknown_statuses"]

UNKNOWN = Kind(
    "leasequeue.W015",
    "jobs",
    "Something else than the queue wrote them; no worker looks at such jobs. Find it, then set "
    "the status to 'ready'.",
)
EXPIRED = Kind(
    "leasequeue.W016",
    "jobs",
    "Start a worker: each of them recovers every queue's expired leases within seconds. If one "
    "runs, look for 'leases_recovered' and errors in its log.",
)
NO_DEADLINE = Kind(
    "leasequeue.W017",
    "jobs",
    "Something else than the queue wrote them: nobody recovers a lease without an end. Set their "
    "lease_until to the present, in UTC.",
)


def unknown_statuses(case: Case) -> Iterator[Finding]:
    """Jobs have a status that does not exist."""
    known = {str(status) for status in Status}
    if unknown := [one for one in jobs.statuses(case.connection) if one not in known]:
        named = ", ".join(map(repr, unknown))
        yield UNKNOWN.found(f"Jobs have a status that does not exist: {named}.")


def expired_leases(case: Case) -> Iterator[Finding]:
    """Leases ran out some time ago, and no worker has recovered the jobs."""
    lease = case.conf.LEASE
    if count := jobs.expired(case.connection, lease):
        yield EXPIRED.found(
            f"{_at_least(count)} jobs lost their lease more than {lease:g} s ago, and nobody "
            "recovers them."
        )


def no_deadlines(case: Case) -> Iterator[Finding]:
    """Jobs are reserved without a deadline."""
    if count := jobs.without_deadline(case.connection):
        yield NO_DEADLINE.found(f"{_at_least(count)} reserved jobs have a lease without an end.")


def _at_least(count: int) -> str:
    return f"{count} or more" if count == jobs.MOST else str(count)
