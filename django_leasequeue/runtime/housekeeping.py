"""Housekeeping: what every worker does for all, on time and without a leader."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from django.db.backends.base.base import BaseDatabaseWrapper

from django_leasequeue.core.recover import BATCH, Recovered, Refusals, any_expired, recover_batch
from django_leasequeue.events import log_event
from django_leasequeue.runtime.clock import ticks
from django_leasequeue.statuses import Status

__all__ = ["Recovery"]

_EVERY = 5.0


class Recovery:
    """Takes expired leases back every min(5 s, lease / 12); a full batch repeats at once."""

    def __init__(self, lease: float) -> None:
        self._every = min(_EVERY, lease / 12)
        self._due = 0.0
        self._refusals = Refusals()

    def run_if_due(
        self,
        connection: BaseDatabaseWrapper,
        stopping: Callable[[], bool],
        on_recovered: Callable[[Sequence[Recovered]], None],
    ) -> None:
        """Run one pass if it is time for it; `on_recovered` gets each batch of what it found."""
        if ticks() < self._due:
            return
        full = any_expired(connection)
        while full and not stopping():
            recovered = recover_batch(connection, refusals=self._refusals)
            full = len(recovered) == BATCH
            if recovered:
                log_event("leases_recovered", count=len(recovered))
                on_recovered(recovered)
            for job in recovered:
                if job.status is Status.DEAD:
                    log_event(
                        "job_dead",
                        level=logging.ERROR,
                        worker=job.worker,
                        job_id=job.job_id,
                        job_type=job.job_type,
                        queue=job.queue,
                        attempt=job.attempt,
                        error="lease expired",
                    )
        self._due = ticks() + self._every
        log_event("recovery_passed", level=logging.DEBUG)
