"""Burials: the `failed` hooks of dead jobs, run where handlers run, whoever saw the job die."""

from __future__ import annotations

import logging

from django.db.backends.base.base import BaseDatabaseWrapper

from django_leasequeue.core.attempts import last_end
from django_leasequeue.core.bury import (
    any_unburied,
    close_burial,
    postpone_burial,
    take_burials,
)
from django_leasequeue.core.lease import Claimed
from django_leasequeue.events import log_event
from django_leasequeue.exceptions import UnknownJobType
from django_leasequeue.outcomes import End
from django_leasequeue.registry import registry
from django_leasequeue.runtime.aftermath import hears_of_deaths
from django_leasequeue.runtime.charges import Charge, Ended, limit_of
from django_leasequeue.runtime.clock import ticks
from django_leasequeue.runtime.executor import LastEnd
from django_leasequeue.runtime.holds import Holds
from django_leasequeue.runtime.messages import Assignment

__all__ = ["Burials"]

_EVERY = 5.0
_TRY_AGAIN = 30.0


class Burials:
    """Looks for dead jobs every min(5 s, lease / 12), and at once when one has just died."""

    def __init__(self, worker: str, lease: float, holds: Holds) -> None:
        self._worker = worker
        self._lease = lease
        self._holds = holds
        self._due = 0.0
        self._ended: list[Ended] = []

    def __len__(self) -> int:
        return len(self._ended)

    def wake(self) -> None:
        """A job has just died: look at the next pass."""
        self._due = 0.0

    def take(self, connection: BaseDatabaseWrapper) -> Charge | None:
        """Take one burial if it is time and there is one; at once again after one was found."""
        if ticks() < self._due:
            return None
        since = ticks()
        job = self._take(connection) if any_unburied(connection) else None
        if job is None:
            self._due = ticks() + min(_EVERY, self._lease / 12)
            return None
        hold = self._holds.add(job, since)
        last = LastEnd(*last_end(connection, job.job_id))
        assignment = Assignment(job, hold.trusted_until, limit_of(job), last)
        return Charge(assignment, hold, ticks())

    def _take(self, connection: BaseDatabaseWrapper) -> Claimed | None:
        heard = hears_of_deaths()
        taken = take_burials(
            connection,
            with_hook=[kind.name for kind in registry if heard or kind.failed is not None],
            without_hook=[kind.name for kind in registry if not heard and kind.failed is None],
            worker=self._worker,
            seconds=self._lease,
        )
        return taken[0] if taken else None

    def add(self, ended: Ended) -> None:
        """Take a burial that has ended."""
        self._ended.append(ended)

    def flush(self, connection: BaseDatabaseWrapper) -> None:
        """Close what was buried; what was not is tried again later. Raises database errors."""
        while self._ended:
            self._close(connection, self._ended[0])
            self._holds.drop(self._ended.pop(0).charge.job.lease)

    def abandon(self) -> None:
        """Leave the rest: its leases run out, and another worker takes it."""
        while self._ended:
            self._holds.drop(self._ended.pop().charge.job.lease)

    def _close(self, connection: BaseDatabaseWrapper, ended: Ended) -> None:
        job, outcome = ended.charge.job, ended.outcome
        if outcome.end is End.COMPLETED:
            close_burial(connection, job.lease)
            return
        if not outcome.started:  # a stop came first: no try, or three of them would be all
            postpone_burial(connection, job.lease, 0, tried=False)
            return
        if outcome.error is not None and outcome.error.error_class == UnknownJobType.__qualname__:
            # The payload is newer than this worker's code: its hook is for one with newer code.
            postpone_burial(connection, job.lease, _TRY_AGAIN, tried=False)
            return
        postpone_burial(connection, job.lease, _TRY_AGAIN)
        log_event(
            "burial_failed",
            level=logging.ERROR,
            job_id=job.job_id,
            job_type=job.job_type,
            error=outcome.error.error_class if outcome.error else outcome.end.value,
        )
