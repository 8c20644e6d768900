"""The worker: one control loop, a pass of which is `turn()`.

Control claims, hands jobs to its crew, settles what comes back and keeps time limits; a renewer
thread with its own connection keeps the leases. With children, control runs no project code.
"""

from __future__ import annotations

import logging
import os
import secrets
import socket
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper

from django_leasequeue.conf import get_conf
from django_leasequeue.core.claim import ClaimSettings
from django_leasequeue.core.lanes import parse_queues
from django_leasequeue.core.presence import Presence
from django_leasequeue.core.reasons import describe
from django_leasequeue.core.recover import Recovered
from django_leasequeue.core.sessions import end_statement
from django_leasequeue.core.settle import Verdict
from django_leasequeue.events import log_event
from django_leasequeue.exceptions import JobInterrupted, LeaseQueueError
from django_leasequeue.outcomes import End
from django_leasequeue.registry import registry
from django_leasequeue.runtime.burials import Burials
from django_leasequeue.runtime.charges import Charge, Ended
from django_leasequeue.runtime.clock import ticks
from django_leasequeue.runtime.connections import open_control
from django_leasequeue.runtime.crew import Capacity, enforce
from django_leasequeue.runtime.crews import crew_for
from django_leasequeue.runtime.doorbell import Doorbell, doorbell_for
from django_leasequeue.runtime.holds import Holds
from django_leasequeue.runtime.housekeeping import Recovery
from django_leasequeue.runtime.intake import Intake
from django_leasequeue.runtime.interrupts import Interrupts
from django_leasequeue.runtime.limits import Limits
from django_leasequeue.runtime.messages import Ack, Cause
from django_leasequeue.runtime.meter import Meter
from django_leasequeue.runtime.options import WorkerOptions, shortest_lease
from django_leasequeue.runtime.outage import Outage
from django_leasequeue.runtime.parking import Parking
from django_leasequeue.runtime.patience import end_overdue
from django_leasequeue.runtime.poll import Poll
from django_leasequeue.runtime.presence import Attendance
from django_leasequeue.runtime.pulse import Pulse
from django_leasequeue.runtime.renewer import Renewer
from django_leasequeue.runtime.settlements import Settlements, ack_of, log_settled
from django_leasequeue.runtime.shutdown import Shutdown
from django_leasequeue.runtime.slots import UNSTARTED
from django_leasequeue.runtime.ticking import Ticking
from django_leasequeue.runtime.wakeup import Wakeup
from django_leasequeue.signals import worker_started, worker_stopped
from django_leasequeue.statuses import Status
from django_leasequeue.version import __version__

__all__ = ["Worker", "WorkerOptions"]

#: How often limits are looked at while handlers run, in seconds.
_LOOK_SECONDS = 0.2
#: Limits are not looked at more often than this.
_ENFORCE_SECONDS = 0.02
#: Nor are the words of children that all have work.
_WORDS_SECONDS = 0.005
#: Then a slot becomes free: for the hooks of the dead, and for what else waits for one.
_AHEAD_SECONDS = 1.0

_RELEASED = replace(UNSTARTED, reason="Released during shutdown before processing")


class ReleaseFailed(LeaseQueueError):
    """A claim could not be given back: its lease has to run out."""


class Worker:
    """Claims jobs and runs them until it is stopped. `run()` returns the exit code.

    `queues` are names, strict in their order, or "*"; `meter` is told of all that it does. Options
    are those of `runworker`, with underscores and in the same units: `lease`, `grace`,
    `kill_after`, `poll_min` and `poll_max` in seconds, `max_memory` in MiB. Raises
    ImproperlyConfigured for what no worker could run with.
    """

    def __init__(
        self, queues: str | Iterable[str] = "*", *, meter: Meter | None = None, **options: Any
    ) -> None:
        self.meter = meter or Meter()
        self.options = WorkerOptions(queues=queues, **options)
        lease, self.database = self.options.lease, self.options.database
        self.shortest_lease = shortest_lease(lease)
        self.queues = parse_queues(self.options.queues)
        self.name = (
            f"{self.options.name}:{socket.gethostname()}:{os.getpid()}:{secrets.token_hex(4)}"
        )
        self.wakeup = Wakeup()
        self.interrupts = Interrupts()
        self.shutdown = Shutdown(self.options.grace, self.wakeup, self._on_abort)
        self.holds = Holds()
        self._orphaned: set[int] = set()
        self.limits = Limits(self.options.kill_after)
        self.crew = crew_for(
            self.options, self.limits, self.interrupts, self.shutdown, self._orphaned.update
        )
        self.settlements = Settlements()
        self.burials = Burials(self.name, lease, self.holds)
        self.recovery = Recovery(lease)
        self.ticking = Ticking(self.name, database=self.options.database, once=self.options.drain)
        self.outage = Outage(get_conf().DATABASE_OUTAGE_LIMIT)
        self.poll = Poll(self.options.poll_min, self.options.poll_max)
        self.renewer = Renewer(
            self.database,
            self.shortest_lease,
            self.holds,
            Attendance(self._presence, self._on_drain_requested),
            self._on_beat,
            self._on_renewing,
        )
        leases = {kind.name: kind.lease for kind in registry if kind.lease}
        self.intake = Intake(
            self.queues,
            ClaimSettings(self.name, lease, leases),
            self.holds,
            self.options.drain_wait,
            self.options.source,
        )
        parks = self.options.handled_only or get_conf().UNKNOWN_JOB_TYPES == "park"
        self.parking = Parking(self.queues, parks=parks)
        self.jobs_run = 0
        self.bell: Doorbell | None = None
        self._held_up = self._buried = self._listening = False
        self._ahead_at = self._enforce_at = self._took_at = 0.0
        self._began = self._turned_at = ticks()
        self._has_started = self._has_ended = False
        self._connection: BaseDatabaseWrapper | None = None

    @property
    def connection(self) -> BaseDatabaseWrapper:
        """The connection for claims and settlements, opened when first used."""
        if self._connection is None:
            self._connection = open_control(
                self.database,
                self.shortest_lease,
                listens=self.bell is not None and self.bell.listens,
            )
        return self._connection

    def stop(self) -> None:
        """Drain: let running handlers finish within the grace period, then end. Raises nothing.

        May be called from any thread, or a signal handler.
        """
        self.shutdown.stop()

    def abort(self) -> None:
        """End soon: running handlers are interrupted and their jobs released. Raises nothing.

        May be called from any thread.
        """
        self.shutdown.abort()

    def pulse(self) -> Pulse:
        """Return how the worker is. Asks no database, raises nothing; any thread may call it."""
        return Pulse(
            turned_ago=ticks() - self._turned_at,
            started=self._has_started,
            stopping=self.shutdown.stopping,
            reachable=not (self.outage.ongoing or self.renewer.failing),
            ended=self._has_ended,
        )

    def _on_beat(self) -> None:
        end_overdue()
        self.crew.beat()
        if self.options.solo and self.crew.charges:
            self._turned()  # the loop stands still in a handler, whose limits the beat keeps

    def _turned(self) -> None:
        self._turned_at = ticks()
        self.meter.turned()

    def _on_recovered(self, jobs: Sequence[Recovered]) -> None:
        self._turned()  # after an outage of many workers there may be batch after batch
        self.meter.recovered(jobs)

    def _on_abort(self) -> None:
        if self.options.solo:
            self.interrupts.deliver(JobInterrupted(Cause.ABORT.value))

    def _on_drain_requested(self) -> None:
        log_event("drain_requested", worker=self.name)
        self.stop()

    def _on_renewing(self) -> None:
        if self._held_up:
            self.wakeup.set()

    def run(self) -> int:
        """Work until stopped, drained or at a limit; return the exit code.

        0 after an orderly end; 1 after a fatal error, logged as `worker_fatal`, or an outage that
        lasted longer than DATABASE_OUTAGE_LIMIT (seed S1's codes). Raises nothing for either.
        Handles SIGTERM and SIGINT when it runs in the main thread. Leaves no connection of its
        own, no thread and no child behind; the forkserver stays for the next worker, and ends
        with this process.
        """
        try:
            with self.shutdown.signals(self.interrupts if self.options.solo else None):
                return self._work()
        finally:
            self.wakeup.close()

    def _work(self) -> int:
        hard, code = True, 1
        worker_started.tell(Worker, worker=self.name)
        self.bell = doorbell_for(self.database, self.queues, self.name)
        self.renewer.start()
        try:
            log_event("worker_started", worker=self.name, pid=os.getpid())
            self._loop()
            hard, code = False, 0
            log_event("worker_stopped", worker=self.name, pid=os.getpid())
        except Exception as error:  # noqa: BLE001  (the supervisor starts a fresh process)
            self.meter.failed()
            log_event(
                "worker_fatal",
                level=logging.CRITICAL,
                worker=self.name,
                error=describe(connections[self.options.database], error),
                raised=error,
            )
        finally:
            self._close_sessions(hard=hard)
            self._has_ended = True
            worker_stopped.tell(Worker, worker=self.name, code=code)
        return code

    def close(self) -> None:
        """End the crew and close what `turn` opened; `run` does so by itself. Raises nothing."""
        self._close_sessions(hard=True)
        self.wakeup.close()

    def _close_sessions(self, *, hard: bool) -> None:
        self.crew.close(hard=hard)
        self.renewer.stop()
        if self.bell is not None:
            self.bell.close()
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _loop(self) -> None:
        while True:
            self._turned()
            try:
                wait = self.turn()
            except Exception as error:
                if not self._is_outage(error):
                    raise
                if self.shutdown.stopping and self._may_leave():
                    return
                self._pause(self.outage.wait_seconds())
                continue
            self._has_started = True
            if wait is None:
                return
            if wait:
                self._wait(wait)

    def _wait(self, seconds: float) -> None:
        """Wait for the crew, a signal, or the doorbell if the last look has found nothing."""
        if gathers := self._gathers():
            self.wakeup.wait(min(seconds, gathers))  # what the crew says meanwhile is read at once
            return
        if self.bell is None or not self._listening:
            self.crew.wait(self.wakeup, seconds)
            self._linger()
            return
        deaf = self.bell.deaf_seconds()
        if deaf:  # what comes meanwhile is for the next look
            self.crew.wait(self.wakeup, min(seconds, deaf))
            return
        until = ticks() + seconds
        while self.crew.wait(self.wakeup, until - ticks(), self.bell.fileno(self.connection)):
            if self.bell.rings(self.connection):
                self.intake.forget()  # its lane may be new, or it was committed late
                self.poll.active()
                return

    def _linger(self) -> None:
        """Let the words of children come together while each has work: reading one costs a pass."""
        left = self._turned_at + _WORDS_SECONDS - ticks()
        if left > 0 and not self.shutdown.stopping and self.crew.occupied(left):
            self.wakeup.wait(left)

    def _is_outage(self, error: Exception) -> bool:
        known = self.outage.ongoing
        covered = self.outage.covers(connections[self.database], error)
        if self.outage.ongoing and not known:
            self.meter.lost_database()
        return covered

    def _pause(self, seconds: float) -> None:
        """Leave the database alone for a while, but not the handlers, nor a stop and its end."""
        until, before = ticks() + seconds, (self.shutdown.stopping, self.shutdown.leaving())
        while ticks() < until or self._must_watch():
            if (self.shutdown.stopping, self.shutdown.leaving()) != before:
                return
            self._turned()
            self._look_after_crew()
            left = until - ticks()
            self.crew.wait(self.wakeup, min(_LOOK_SECONDS, left) if left > 0 else _LOOK_SECONDS)

    def _must_watch(self) -> bool:
        """Tell whether a lease ends so soon that a try to reach the database could outlast it."""
        return any(charge.hold.ending for charge in self.crew.charges)

    def turn(self) -> float | None:
        """Do one pass: what has ended, what is due, one claim.

        Returns seconds to wait before the next pass, 0 for none, None when the worker is to end.
        Raises database errors; the loop decides about them.
        """
        self._listening = False
        self._look_after_crew()
        self._settle()
        if self.shutdown.stopping:
            return self._wind_down()
        self.recovery.run_if_due(
            self.connection, lambda: self.shutdown.stopping, self._on_recovered
        )
        if self.ticking.run_if_due(
            self.connection, lambda: self.shutdown.stopping, self.meter.ticked
        ):
            self.intake.forget()
        wait = self._take_in()
        self._look_after_crew()
        self._settle()
        if wait and (gathers := self._gathers()):
            wait = min(wait, gathers)
        return self._at_limit(wait and min(wait, self.ticking.seconds_left()))

    def _look_after_crew(self) -> None:
        """Collect what has ended and keep time limits; asks no database."""
        for ended in self.crew.collect():
            if ended.charge.burial:
                self.meter.buried(ended)
                self.burials.add(ended)
                continue
            unstarted = self.shutdown.stopping and ended.outcome == UNSTARTED
            self.settlements.add(ended._replace(outcome=_RELEASED) if unstarted else ended)
        now = ticks()
        if now >= self._enforce_at:  # a turn may come with each of thousands of jobs a second
            self._enforce_at = now + _ENFORCE_SECONDS
            enforce(self.crew, self.limits, now, abort=self.shutdown.aborting())

    def _gathers(self) -> float:
        """Return for how many seconds more what has ended may wait for more; 0: settle it now.

        It may while everyone has work: nobody waits for control meanwhile.
        """
        left = 0.0 if self.shutdown.stopping else self.settlements.waits_for_others()
        return left if left and self.crew.occupied(left) else 0.0

    def _settle(self) -> None:
        if self._gathers():
            return
        self._end_statements()
        acks = []
        for ended, settled in self.settlements.flush(self.connection):
            acks.append(ack_of(ended, settled))
            self.holds.drop(ended.charge.job.lease)
            if settled.verdict is Verdict.SETTLED and not ended.outcome.settled:
                self.outage.over()  # the database has answered; what was given up asked nothing
            log_settled(ended, settled, stopping=self.shutdown.stopping)
            self.meter.settled(ended, settled, ticks() - ended.charge.ended_at)
            if ended.outcome.started:
                self.jobs_run += 1
            if settled.status is Status.READY and self.options.drain:
                self.intake.retries(ended.charge.job.job_id)
            if settled.status is Status.READY and not ended.outcome.started:
                self.intake.forget()  # what was given back is due before its lane's mark
            if settled.status is Status.DEAD:
                self.burials.wake()
        self.crew.acknowledge(acks)
        self.burials.flush(self.connection)

    def _take_in(self) -> float | None:
        """Claim and hand over as much as the crew can take; return what `turn` returns."""
        room = self._room()
        self._held_up = True  # before the look: the renewer wakes whoever waits for it
        if self.renewer.failing or not any(room):
            return self._idle()
        self._held_up = False
        return self._take_now(room) if room.free else self._take_ahead(room)

    def _take_now(self, room: Capacity) -> float | None:
        """Claim for those who have nothing to run; return what `turn` returns."""
        self._took_at = ticks()
        heard = self.bell is not None and self.bell.before_look(self.connection)
        skipped = self._buried  # hooks and handlers take turns where both wait
        burial = None if skipped else self.burials.take(self.connection)
        self._buried = burial is not None
        if burial is not None:
            self.crew.give([burial])
            return 0
        pulled = self.intake.pull(self.database)
        self._wake(room)
        charges = self._take(room)
        self.outage.over()
        if not charges and skipped:
            return 0
        if not charges and (pulled or self._is_drained()):
            # What was just pulled, or enqueued by the jobs just waited for, may be in lanes not
            # known yet. If not, and it is for later or for others, the source may have more.
            self.intake.forget()
            self._wake(room, now=True)
            charges = self._take(room)
            if not charges:
                return 0 if pulled else None
        if not charges and heard:
            self.intake.forget()  # as in `_wait`
            charges = self._take(room)
        if self.bell is not None:
            self.bell.after_look(found=bool(charges))
        if not charges:
            self._listening = True
            return self._idle()
        self._hand_over(charges)
        self.poll.active()
        return 0

    def _take_ahead(self, room: Capacity) -> float:
        """Claim what is to wait, while the crew is busy: it need not wait for the next claim."""
        now = ticks()
        if now < self._ahead_at or now - self._took_at > _AHEAD_SECONDS:
            return self._idle()
        charges = self._take(room)
        self.outage.over()
        if not charges:  # the crew's every word would ask the database again
            self._ahead_at = ticks() + self.options.poll_max
            return self._idle()
        self._hand_over(charges)
        self.poll.active()
        return 0

    def _take(self, room: Capacity) -> list[Charge]:
        since = ticks()
        charges = self.intake.take(self.connection, room)
        self.meter.claimed(charges, ticks() - since)
        return charges

    def _wake(self, room: Capacity, *, now: bool = False) -> None:
        if self.parking.wake_if_due(self.connection, room.free + room.ahead, now=now):
            self.intake.forget()  # what was parked has been due for long: before each lane's mark

    def _hand_over(self, charges: list[Charge]) -> None:
        """Give the crew what it may run, and let the rest end as parked."""
        known, parked = self.parking.sift(charges)
        for ended in parked:
            self.settlements.add(ended)
        if known:
            self.crew.give(known)

    def _room(self) -> Capacity:
        """Return how many jobs may be claimed now."""
        room = self.crew.capacity()
        if self.options.max_jobs is None:
            return room
        running = sum(not charge.burial for charge in self.crew.charges)
        left = max(0, self.options.max_jobs - self.jobs_run - running - len(self.settlements))
        free = min(room.free, left)
        return Capacity(free, min(room.ahead, left - free))

    def _idle(self) -> float:
        wait = self.poll.wait_seconds()
        return min(wait, _LOOK_SECONDS) if self.crew.charges or self._unsettled() else wait

    def _unsettled(self) -> int:
        return len(self.settlements) + len(self.burials)

    def _is_drained(self) -> bool:
        """Tell whether a draining worker has nothing to wait for: its own jobs, or others'."""
        if not self.options.drain or self.crew.charges or self._unsettled():
            return False
        if not self.ticking.over:
            return False
        return self.intake.drained(self.connection)

    def _at_limit(self, wait: float | None) -> float | None:
        """Drain when the worker has run for its jobs, its seconds, or out of its memory."""
        options = self.options
        if options.max_seconds is not None and ticks() - self._began >= options.max_seconds:
            self.stop()
        if self.crew.outgrown():
            self.stop()
        if options.max_jobs is not None and self.jobs_run >= options.max_jobs:
            self.stop()
        return wait

    def _wind_down(self) -> float | None:
        """Let running handlers finish; return None when nothing is left, or no time."""
        self.crew.stop()
        self._look_after_crew()  # what solo had waiting has ended with that
        self._settle()
        if self._may_leave():
            return None
        return _LOOK_SECONDS

    def _may_leave(self) -> bool:
        """Tell whether a stopping worker may end. Raises what could not be given back in time."""
        if not self.crew.charges and not self._unsettled():
            return True
        if not self.shutdown.leaving() or self.crew.charges:
            return False
        self.burials.abandon()
        self._abandon()
        return True

    def _abandon(self) -> None:
        """Leave what could not be written to its lease's end, and say so."""
        left = self.settlements.abandon()
        self.crew.acknowledge([Ack(end.charge.job.lease, None) for end in left])
        failed = [end.charge.job.job_id for end in left if self._left(end)]
        if failed:
            raise ReleaseFailed(f"job {failed[0]}: it could not be released in time")

    def _left(self, ended: Ended) -> bool:
        """Log an attempt whose end could not be written; tell whether it never started."""
        job, outcome = ended.charge.job, ended.outcome
        unstarted = outcome.end is End.RELEASED and not outcome.started
        self.meter.left(ended, unstarted=unstarted)
        log_event(
            "claim_release_failed" if unstarted else "job_lease_lost",
            level=logging.ERROR if unstarted else logging.WARNING,
            worker=self.name,
            job_id=job.job_id,
            job_type=job.job_type,
            queue=job.queue,
            attempt=job.attempt,
            error="the database could not be reached, or its row stayed locked",
        )
        return unstarted

    def _end_statements(self) -> None:
        """End what a killed child's sessions still execute: its locks would outlive it."""
        while self._orphaned:
            end_statement(self.connection, self._orphaned.pop())

    def _presence(self) -> Presence:
        return Presence(
            name=self.name,
            host=socket.gethostname(),
            pid=os.getpid(),
            version=__version__,
            queues=self.queues,
            children=self.crew.size,
            jobs=self.holds.shown(),
        )
