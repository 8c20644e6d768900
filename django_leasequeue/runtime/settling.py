"""Settling: bring an attempt's outcome into the database while its lease is worth anything."""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable

from django.db import DatabaseError, InterfaceError
from django.db.backends.base.base import BaseDatabaseWrapper

from django_leasequeue.core.lease import Claimed
from django_leasequeue.core.settle import Ending, Settled, Verdict, settle
from django_leasequeue.core.transaction import CommitUnknown
from django_leasequeue.events import log_event
from django_leasequeue.outcomes import End, Outcome
from django_leasequeue.runtime.clock import ticks
from django_leasequeue.runtime.holds import Hold
from django_leasequeue.runtime.outage import Outage
from django_leasequeue.statuses import Status

__all__ = ["log_settled", "settle_held"]

_EVENTS = {
    End.COMPLETED: "job_completed",
    End.SKIPPED: "job_skipped",
    End.FAILED: "job_failed",
    End.TIMED_OUT: "job_timed_out",
    End.REJECTED: "job_rejected",
    End.CANCELLED: "job_cancelled",
    End.CRASHED: "job_crashed",
    End.EXPIRED: "job_failed",
    End.SNOOZED: "job_snoozed",
    End.RELEASED: "claim_released_on_shutdown",
    End.PARKED: "job_parked",
}
_LOUD = {End.FAILED, End.TIMED_OUT, End.REJECTED, End.CRASHED, End.EXPIRED}


def settle_held(
    connection: BaseDatabaseWrapper,
    outcome: Outcome,
    hold: Hold,
    outage: Outage,
    *,
    within: float,
    hurry: Callable[[], bool],
) -> Settled:
    """Settle one outcome and return what became of it.

    While the database is away it is tried again for `within` seconds; a row, or a key, that
    somebody has locked is waited for as long as the lease is renewed, or until `hurry()`. After
    that the lease is left to run out, and the verdict is PENDING. Raises errors that waiting
    cannot help.
    """
    ending = Ending(hold.lease, outcome)
    away_since: float | None = None
    while True:
        try:
            settled = settle(connection, [ending])[0]
            outage.over()
            away_since = None
        except (DatabaseError, InterfaceError, CommitUnknown) as error:
            if not outage.covers(connection, error):
                raise
            settled = Settled(ending, Verdict.PENDING)
            away_since = away_since or ticks()
        if settled.verdict is not Verdict.PENDING:
            return settled
        log_event("settlement_pending", level=logging.DEBUG, job_id=hold.lease.job_id)
        if hold.lost:
            return Settled(ending, Verdict.LOST)
        if hurry() or (away_since is not None and ticks() - away_since >= within):
            return settled
        time.sleep(random.uniform(0.05, 0.25))


def log_settled(job: Claimed, settled: Settled, elapsed: float) -> None:
    """Log how an attempt ended, and a death on a line of its own."""
    outcome = settled.ending.outcome
    fields = {
        "worker": job.leased_by,
        "job_id": job.job_id,
        "job_type": job.job_type,
        "queue": job.queue,
        "attempt": job.attempt,
        "elapsed_ms": int(elapsed * 1000),
        "error": outcome.error.text if outcome.error else outcome.reason or None,
    }
    if settled.verdict is not Verdict.SETTLED:
        log_event("job_lease_lost", level=logging.WARNING, **fields)
        return
    level = logging.WARNING if outcome.end in _LOUD else logging.INFO
    log_event(_EVENTS[outcome.end], level=level, **fields)
    if settled.status is Status.DEAD:
        log_event("job_dead", level=logging.ERROR, **fields)
