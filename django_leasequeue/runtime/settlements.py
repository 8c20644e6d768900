"""Settlements: how attempts ended, on its way into the database, in groups that wait for nobody.

An outcome waits while the database is away or somebody has its row locked, as long as its lease
is worth anything; all others go on without it.
"""

from __future__ import annotations

import logging
import random
from dataclasses import dataclass, field
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper

from django_leasequeue.core.lease import Claimed
from django_leasequeue.core.settle import Ending, Settled, Verdict, settle
from django_leasequeue.events import log_event
from django_leasequeue.outcomes import Budget, End, transition
from django_leasequeue.runtime.charges import Ended
from django_leasequeue.runtime.clock import ticks
from django_leasequeue.runtime.messages import Ack
from django_leasequeue.statuses import Status

__all__ = ["Settlements", "ack_of", "log_settled"]

_MOST = 400
#: Ends of short jobs wait for one another so long: alone, each would cost a commit.
_TOGETHER_SECONDS = 0.005
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


@dataclass(slots=True)
class Settlements:
    """What has ended and is not settled yet."""

    _waiting: list[Ended] = field(default_factory=list)
    _done: list[tuple[Ended, Settled]] = field(default_factory=list)
    _again_at: float = 0.0
    _failing_since: float | None = None

    def add(self, ended: Ended) -> None:
        """Take an attempt that has ended."""
        ended.charge.ended_at = ticks()
        self._waiting.append(ended)
        self._again_at = min(self._again_at, ticks())

    def __len__(self) -> int:
        return len(self._waiting)

    def waits_for_others(self) -> float:
        """Return for how many seconds more the oldest end may wait for others; 0: no longer."""
        if not self._waiting or len(self._waiting) >= _MOST or self._failing_since is not None:
            return 0.0
        return max(0.0, self._waiting[0].charge.ended_at + _TOGETHER_SECONDS - ticks())

    def flush(self, connection: BaseDatabaseWrapper) -> list[tuple[Ended, Settled]]:
        """Settle what can be settled now and return it; what cannot stays.

        Raises database errors that mean to wait, and those that waiting cannot help; what was not
        settled stays then, too.
        """
        pending: list[Ended] = []
        waiting = self._waiting if ticks() >= self._again_at else []
        while waiting:
            group, waiting = waiting[:_MOST], waiting[_MOST:]
            try:
                results = _settle(connection, group)
            except Exception:  # whatever it is, it is counted here and decided by the loop
                self._give_up()
                raise
            self._failing_since = None
            self._waiting = [*pending, *waiting]
            for ended, settled in zip(group, results, strict=True):
                if settled.verdict is Verdict.PENDING and not ended.charge.hold.lost:
                    log_event(
                        "settlement_pending", level=logging.DEBUG, job_id=ended.charge.job.job_id
                    )
                    pending.append(ended)
                else:
                    self._done.append((ended, settled))
            self._waiting = [*pending, *waiting]
        if pending:
            self._again_at = ticks() + random.uniform(0.05, 0.25)
        done, self._done = self._done, []
        return done

    def _give_up(self) -> None:
        """Leave to their leases' ends what could not be settled for as long as a lease is.

        Renewed for ever, such a job would be nobody's.
        """
        now = ticks()
        self._failing_since = self._failing_since or now
        kept = []
        for ended in self._waiting:
            if now - max(self._failing_since, ended.charge.ended_at) < ended.charge.hold.seconds:
                kept.append(ended)
            else:
                ending = Ending(ended.charge.job.lease, ended.outcome)
                self._done.append((ended, Settled(ending, Verdict.LOST)))
        self._waiting = kept

    def abandon(self) -> list[Ended]:
        """Stop trying, and return what could not be settled: its leases run out."""
        left, self._waiting = self._waiting, []
        return left


def _settle(connection: BaseDatabaseWrapper, group: list[Ended]) -> list[Settled]:
    """Settle a group; what a handler has settled itself, by complete(), needs no write."""
    endings = [Ending(ended.charge.job.lease, ended.outcome) for ended in group]
    results = iter(settle(connection, [one for one in endings if not one.outcome.settled]))
    return [
        Settled(one, Verdict.SETTLED, Status.DONE) if one.outcome.settled else next(results)
        for one in endings
    ]


def ack_of(ended: Ended, settled: Settled) -> Ack:
    """Return what is told of a settlement where the handler ran."""
    job = ended.charge.job
    status = settled.status
    if settled.verdict is not Verdict.SETTLED:
        status = Status.CANCELLED if ended.charge.hold.cancelled else None
    elif status is None:  # it was found on record: an earlier COMMIT whose answer was lost
        budget = Budget(job.attempt, job.max_attempts, job.crashes, job.crashes + 2, 0)
        status = transition(ended.outcome, budget).status
    return Ack(job.lease, status)


def log_settled(ended: Ended, settled: Settled, *, stopping: bool) -> None:
    """Log how an attempt ended, and a death on a line of its own."""
    job, outcome = ended.charge.job, settled.ending.outcome
    if outcome.end is End.RELEASED and not outcome.started:
        _log_unstarted(job, settled, stopping=stopping)
        return
    fields: dict[str, Any] = {
        "worker": job.leased_by,
        "job_id": job.job_id,
        "job_type": job.job_type,
        "queue": job.queue,
        "attempt": job.attempt,
        "elapsed_ms": int(ended.seconds * 1000),
        "error": outcome.error.text if outcome.error else outcome.reason or None,
    }
    if ended.charge.hold.cancelled:
        log_event("job_cancelled", **fields)
        return
    if settled.verdict is not Verdict.SETTLED:
        log_event("job_lease_lost", level=logging.WARNING, **fields)
        return
    level = logging.WARNING if outcome.end in _LOUD else logging.INFO
    if outcome.end is End.RELEASED and not stopping:
        log_event("job_released", **fields)
    else:
        log_event(_EVENTS[outcome.end], level=level, **fields)
    if settled.status is Status.DEAD:
        log_event("job_dead", level=logging.ERROR, **fields)


def _log_unstarted(job: Claimed, settled: Settled, *, stopping: bool) -> None:
    """Log a claim that was given back before its handler began (seed S1's shutdown race)."""
    about: dict[str, Any] = {
        "worker": job.leased_by,
        "job_id": job.job_id,
        "job_type": job.job_type,
        "queue": job.queue,
        "attempt": job.attempt,
    }
    if settled.verdict is not Verdict.SETTLED:
        log_event("claim_release_lost", level=logging.WARNING, **about)
    elif stopping:
        log_event("claim_released_on_shutdown", **about)
    else:
        log_event("claim_released", level=logging.DEBUG, **about)
