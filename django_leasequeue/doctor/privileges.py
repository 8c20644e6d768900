"""What the account may do, against what a worker does."""

from __future__ import annotations

from collections.abc import Iterator

from django_leasequeue.doctor.case import Case
from django_leasequeue.doctor.findings import Finding, Kind

__all__ = ["NEEDED", "privileges"]

#: What a worker does with each table; see docs/deployment/.
NEEDED = {
    "leasequeue_job": {"SELECT", "INSERT", "UPDATE"},
    "leasequeue_jobattempt": {"SELECT", "INSERT"},
    "leasequeue_jobeffect": {"SELECT", "INSERT"},
    "leasequeue_queue": {"SELECT"},
    "leasequeue_schedule": {"SELECT", "INSERT", "UPDATE"},
    "leasequeue_worker": {"SELECT", "INSERT", "UPDATE"},
}

MISSING = Kind(
    "leasequeue.E013",
    "privileges",
    "Grant them to the worker's account.",
)
TOO_MANY = Kind(
    "leasequeue.I005",
    "privileges",
    "Give workers an account of their own, with SELECT, INSERT and UPDATE alone.",
)


def privileges(case: Case) -> Iterator[Finding]:
    """The account lacks what a worker needs, or may delete jobs, which no worker does."""
    existing = {*case.tables, *case.unseen}
    missing, deletes = [], []
    for table, needed in NEEDED.items():
        held = case.server.privileges(case.connection, table) if table in existing else None
        if held is None:
            continue
        missing += [f"{word} on {table}" for word in sorted(needed - held)]
        deletes += [table] * ("DELETE" in held)
    if missing:
        yield MISSING.found(f"This account may not do what a worker does: {', '.join(missing)}.")
    if deletes:
        yield TOO_MANY.found(f"This account may delete rows of {', '.join(deletes)}.")
