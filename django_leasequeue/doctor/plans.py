"""How this server would run the queue's statements, with this data: no sort, no full scan.

The statements are the core's own, explained and not run.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

from django.db import DatabaseError

from django_leasequeue.core.dialect import trouble
from django_leasequeue.core.inspection.explain import explained_instead
from django_leasequeue.core.inspection.plan import Plan
from django_leasequeue.core.lanes import Lane
from django_leasequeue.core.lease import Lease, hold_within, lock_within, renew
from django_leasequeue.core.recover import recover_batch
from django_leasequeue.core.take import ClaimSettings, Taken, Wanted, take
from django_leasequeue.core.transaction import run
from django_leasequeue.doctor.case import Case
from django_leasequeue.doctor.findings import Finding, Kind
from django_leasequeue.exceptions import LeaseLost

__all__ = ["plans"]

PLAN = Kind(
    "leasequeue.W013",
    "plans",
    "Restore the indexes (see E016), then bring the statistics up to date: ANALYZE TABLE "
    "leasequeue_job on MySQL and MariaDB, ANALYZE leasequeue_job on PostgreSQL and SQLite.",
)
_NAMES = {
    "claim": "a claim",
    "renew": "a renewal",
    "standing": "a look at leases",
    "hold": "a completion",
    "recover": "a recovery",
}
#: Leases of jobs that cannot exist; two, for a single key would be looked up while planning.
_NOBODY = [Lease(-1, b"\0" * 16), Lease(-2, b"\0" * 16)]


def plans(case: Case) -> Iterator[Finding]:
    """A claim, renewal, completion or recovery would sort, or read a whole table or index."""
    found: dict[str, Plan] = {}
    for name, explain in (
        ("claim", _claim),
        ("renew", _renewal),
        ("hold", _completion),
        ("recover", _recovery),
    ):
        try:
            with explained_instead(case.worker) as explained:
                explain(case)
        except DatabaseError as error:
            if case.server.is_denied(case.worker, error) or trouble(case.worker, error):
                raise  # it says nothing of the plan
            code = case.dialect.code_of(error)
            yield PLAN.found(f"The server refuses to plan {_NAMES[name]} (code {code}).")
            continue
        for plan in explained:
            if plan.sorts or plan.scans:
                found[plan.tag] = plan
    for tag, plan in found.items():
        verbs = ["sorts"] * plan.sorts + ["reads a whole table or index"] * plan.scans
        yield PLAN.found(f"On this server {_NAMES.get(tag, tag)} {' and '.join(verbs)}.")


def _claim(case: Case) -> None:
    settings = ClaimSettings("doctor", case.conf.LEASE, {})
    queues = case.ask("SELECT queue_name FROM leasequeue_job ORDER BY id DESC LIMIT 1")
    lane = Lane(queues[0][0] if queues else "default", 0)
    run(
        case.worker,
        lambda cursor: take(
            case.worker, cursor, lane, None, Wanted(10, 0), settings, Taken(b"\0" * 16)
        ),
    )


def _renewal(case: Case) -> None:
    renew(case.worker, _NOBODY, case.conf.LEASE)


def _recovery(case: Case) -> None:
    recover_batch(case.worker)


def _completion(case: Case) -> None:
    with suppress(LeaseLost):
        run(case.worker, lambda cursor: hold_within(case.worker, cursor, _NOBODY[0], 60))
    with suppress(LeaseLost):
        run(case.worker, lambda _cursor: lock_within(case.worker, _NOBODY[0]))
