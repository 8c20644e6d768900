"""Intake: what a worker claims, as much as its crew can take, and what a source adds to it."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from django.db import DatabaseError, InterfaceError, connections
from django.db.backends.base.base import BaseDatabaseWrapper

from django_leasequeue.core.claim import ClaimSettings, claims
from django_leasequeue.core.drain import anything_reserved, waiting_retries
from django_leasequeue.core.enqueue import enqueue
from django_leasequeue.core.lanes import Lanes
from django_leasequeue.core.lease import Claimed
from django_leasequeue.events import log_event
from django_leasequeue.exceptions import EnqueueError
from django_leasequeue.runtime.charges import Charge, limit_of
from django_leasequeue.runtime.clock import ticks
from django_leasequeue.runtime.crew import Capacity
from django_leasequeue.runtime.holds import Holds
from django_leasequeue.runtime.isolation import revive
from django_leasequeue.runtime.messages import Assignment

__all__ = ["Intake"]

#: A claim keeps other workers from the rows that it takes: not from more than so many.
_MOST = 500


class Intake:
    """The claims of one worker, and what a drain still waits for; `drain_wait` is seconds."""

    def __init__(
        self,
        queues: tuple[str, ...],
        settings: ClaimSettings,
        holds: Holds,
        drain_wait: float,
        source: Callable[[], Any] | None,
    ) -> None:
        self._queues = queues
        self._settings = settings
        self._holds = holds
        self._drain_wait = drain_wait
        self._source = source
        self._lanes = Lanes(queues)
        self._retrying: set[int] = set()
        self._pulled: Any = None

    def take(self, connection: BaseDatabaseWrapper, room: Capacity) -> list[Charge]:
        """Claim what is due, `room.free` jobs and `room.ahead` more, and hold the leases.

        Of these no more than make it 500: the rest is for the next claim.
        """
        since = ticks()
        ahead = min(room.ahead, max(0, _MOST - room.free))
        charges: list[Charge] = []
        for jobs in claims(connection, self._lanes, room.free, self._settings, ahead=ahead):
            charges += [self._charge(job, since) for job in jobs]
        if not charges:
            log_event("claim_empty", level=logging.DEBUG, worker=self._settings.worker)
        return charges

    def _charge(self, job: Claimed, since: float) -> Charge:
        hold = self._holds.add(job, since)
        return Charge(Assignment(job, hold.trusted_until, limit_of(job)), hold, since)

    def pull(self, database: str) -> bool:
        """Enqueue the next job of the source; return whether it had one.

        Until that has succeeded the source is not asked again, so nothing it gave is lost in an
        outage. Raises EnqueueError for what can never be enqueued.
        """
        if self._source is not None and self._pulled is None:
            self._pulled = self._source()
        if self._pulled is None:
            return False
        project = connections[database]
        revive(project)
        try:
            _enqueue(self._pulled, database)
        except (DatabaseError, InterfaceError):
            project.close()  # for the next try, with the same job
            raise
        self._pulled = None
        return True

    def forget(self) -> None:
        """Look at all lanes afresh at the next claim."""
        self._lanes.forget()

    def retries(self, job_id: int) -> None:
        """Note that a job of this worker has to be tried again: a drain waits for it."""
        self._retrying.add(job_id)

    def drained(self, connection: BaseDatabaseWrapper) -> bool:
        """Tell whether nothing is reserved in the queues, and no own retry is soon due."""
        self._retrying = waiting_retries(connection, self._retrying, self._drain_wait)
        return not self._retrying and not anything_reserved(connection, self._queues)


def _enqueue(item: Any, database: str) -> None:
    match item:
        case (job_type, payload):
            enqueue(job_type, payload, using=database)
        case (job_type, payload, {**options}):
            wanted: Any = {"using": database, **options}
            enqueue(job_type, payload, **wanted)
        case _:
            raise EnqueueError(
                "The source returned what is no job: it has to be (job type, payload), "
                f"(job type, payload, options) or None, not {type(item).__name__}."
            )
