"""Returns: what comes back from the crew, until it is settled, closed, or left to its lease."""

from __future__ import annotations

import logging
from dataclasses import replace

from django.db.backends.base.base import BaseDatabaseWrapper

from django_leasequeue.core.settle import Settled, Verdict
from django_leasequeue.events import log_event
from django_leasequeue.exceptions import LeaseQueueError
from django_leasequeue.outcomes import End
from django_leasequeue.runtime.burials import Burials
from django_leasequeue.runtime.charges import Ended
from django_leasequeue.runtime.clock import ticks
from django_leasequeue.runtime.crew import Crew
from django_leasequeue.runtime.holds import Holds
from django_leasequeue.runtime.intake import Intake
from django_leasequeue.runtime.messages import Ack
from django_leasequeue.runtime.meter import Meter
from django_leasequeue.runtime.outage import Outage
from django_leasequeue.runtime.settlements import Settlements, ack_of, log_settled
from django_leasequeue.runtime.shutdown import Shutdown
from django_leasequeue.runtime.slots import UNSTARTED
from django_leasequeue.statuses import Status

__all__ = ["ReleaseFailed", "Returns"]

_RELEASED = replace(UNSTARTED, reason="Released during shutdown before processing")


class ReleaseFailed(LeaseQueueError):
    """A claim could not be given back: its lease has to run out."""


class Returns:
    """The attempts and burials of one worker that have ended, and what follows from their ends."""

    def __init__(
        self,
        name: str,
        crew: Crew,
        burials: Burials,
        holds: Holds,
        intake: Intake,
        shutdown: Shutdown,
        outage: Outage,
        meter: Meter,
        *,
        drain: bool,
    ) -> None:
        self._name = name
        self._crew = crew
        self._burials = burials
        self._holds = holds
        self._intake = intake
        self._shutdown = shutdown
        self._outage = outage
        self._meter = meter
        self._drain = drain
        self._settlements = Settlements()
        self._run = 0

    def __len__(self) -> int:
        """Return how many are not in the database yet."""
        return len(self._settlements) + len(self._burials)

    @property
    def jobs_run(self) -> int:
        """How many attempts are in the database whose handlers had begun."""
        return self._run

    @property
    def jobs_counted(self) -> int:
        """How many attempts count, or may yet, towards the most that a worker is to run."""
        return self._run + len(self._settlements)

    def collect(self) -> None:
        """Take what has ended in the crew since the last call; asks no database."""
        for ended in self._crew.collect():
            if ended.charge.burial:
                self._meter.buried(ended)
                self._burials.add(ended)
                continue
            unstarted = self._shutdown.stopping and ended.outcome == UNSTARTED
            self.add(ended._replace(outcome=_RELEASED) if unstarted else ended)

    def add(self, ended: Ended) -> None:
        """Take an attempt that has ended."""
        self._settlements.add(ended)

    def gathers(self) -> float:
        """Return for how many seconds more what has ended may wait for more; 0: settle it now.

        It may while everyone has work: nobody waits for control meanwhile.
        """
        left = 0.0 if self._shutdown.stopping else self._settlements.waits_for_others()
        return left if left and self._crew.occupied(left) else 0.0

    def settle(self, connection: BaseDatabaseWrapper) -> None:
        """Write the ends that can be written now, and tell who listens. Raises database errors."""
        acks = []
        for ended, settled in self._settlements.flush(connection):
            acks.append(ack_of(ended, settled))
            self._holds.drop(ended.charge.job.lease)
            if settled.verdict is Verdict.SETTLED and not ended.outcome.settled:
                self._outage.over()  # the database has answered; what was given up asked nothing
            log_settled(ended, settled, stopping=self._shutdown.stopping)
            self._meter.settled(ended, settled, ticks() - ended.charge.ended_at)
            if ended.outcome.started:
                self._run += 1
            self._follow(ended, settled)
        self._crew.acknowledge(acks)
        self._burials.flush(connection)

    def _follow(self, ended: Ended, settled: Settled) -> None:
        if settled.status is Status.READY and self._drain:
            self._intake.retries(ended.charge.job.job_id)
        if settled.status is Status.READY and not ended.outcome.started:
            self._intake.forget()  # what was given back is due before its lane's mark
        if settled.status is Status.DEAD:
            self._burials.wake()

    def abandon(self) -> None:
        """Leave what could not be written to its lease's end, and say so.

        Raises ReleaseFailed if a claim whose handler never began is among it.
        """
        self._burials.abandon()
        left = self._settlements.abandon()
        self._crew.acknowledge([Ack(end.charge.job.lease, None) for end in left])
        failed = [end.charge.job.job_id for end in left if self._left(end)]
        if failed:
            raise ReleaseFailed(f"job {failed[0]}: it could not be released in time")

    def _left(self, ended: Ended) -> bool:
        """Log an attempt whose end could not be written; tell whether it never started."""
        job, outcome = ended.charge.job, ended.outcome
        unstarted = outcome.end is End.RELEASED and not outcome.started
        self._meter.left(ended, unstarted=unstarted)
        log_event(
            "claim_release_failed" if unstarted else "job_lease_lost",
            level=logging.ERROR if unstarted else logging.WARNING,
            worker=self._name,
            job_id=job.job_id,
            job_type=job.job_type,
            queue=job.queue,
            attempt=job.attempt,
            error="the database could not be reached, or its row stayed locked",
        )
        return unstarted
