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
from django_leasequeue.events import log_event
from django_leasequeue.exceptions import JobInterrupted
from django_leasequeue.registry import registry
from django_leasequeue.runtime.burials import Burials
from django_leasequeue.runtime.clock import ticks
from django_leasequeue.runtime.connections import open_control
from django_leasequeue.runtime.crew import enforce
from django_leasequeue.runtime.crews import crew_for
from django_leasequeue.runtime.doorbell import doorbell_for
from django_leasequeue.runtime.holds import Holds
from django_leasequeue.runtime.housekeeping import Recovery
from django_leasequeue.runtime.intake import Intake
from django_leasequeue.runtime.interrupts import Interrupts
from django_leasequeue.runtime.limits import Limits
from django_leasequeue.runtime.messages import Cause
from django_leasequeue.runtime.meter import Meter
from django_leasequeue.runtime.options import WorkerOptions, shortest_lease
from django_leasequeue.runtime.outage import Outage
from django_leasequeue.runtime.parking import Parking
from django_leasequeue.runtime.patience import end_overdue
from django_leasequeue.runtime.presence import Attendance
from django_leasequeue.runtime.pulse import Pulse
from django_leasequeue.runtime.renewer import Renewer
from django_leasequeue.runtime.returns import Returns
from django_leasequeue.runtime.shutdown import Shutdown
from django_leasequeue.runtime.supply import LOOK_SECONDS, Supply
from django_leasequeue.runtime.ticking import Ticking
from django_leasequeue.runtime.wakeup import Wakeup
from django_leasequeue.signals import worker_started, worker_stopped
from django_leasequeue.version import __version__

__all__ = ["Worker", "WorkerOptions"]

#: Limits are not looked at more often than this.
_ENFORCE_SECONDS = 0.02
#: Nor are the words of children that all have work.
_WORDS_SECONDS = 0.005


class Worker:
    """Claims jobs and runs them until it is stopped. `run()` returns the exit code.

    `queues` are names, strict in their order, or "*"; `meter` is told of all that it does. Options
    are those of `runworker`, with underscores and in the same units: `lease`, `grace`,
    `kill_after`, `poll_min`, `poll_max`, `drain_wait` and `max_seconds` in seconds, `max_memory` in
    MiB. `solo` runs handlers in the calling thread, and may have a `source`: a callable that
    returns the next (job type, payload[, options]) to enqueue, or None. Raises ImproperlyConfigured
    for what no worker could run with.
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
        self.recovery = Recovery(lease)
        self.ticking = Ticking(self.name, database=self.options.database, once=self.options.drain)
        self.outage = Outage(get_conf().DATABASE_OUTAGE_LIMIT)
        self.renewer = Renewer(
            self.database,
            self.shortest_lease,
            self.holds,
            Attendance(self._presence, self._on_drain_requested),
            self._on_beat,
            self._on_renewing,
        )
        self.returns, self.supply = self._parts()
        self._held_up = False
        self._enforce_at = 0.0
        self._began = self._turned_at = ticks()
        self._has_started = self._has_ended = False
        self._connection: BaseDatabaseWrapper | None = None

    def _parts(self) -> tuple[Returns, Supply]:
        """Make what comes back from the crew, and what it is given."""
        options = self.options
        leases = {kind.name: kind.lease for kind in registry if kind.lease}
        settings = ClaimSettings(self.name, options.lease, leases)
        intake = Intake(self.queues, settings, self.holds, options.drain_wait, options.source)
        burials = Burials(self.name, options.lease, self.holds)
        parks = options.handled_only or get_conf().UNKNOWN_JOB_TYPES == "park"
        returns = Returns(
            self.name,
            self.crew,
            burials,
            self.holds,
            intake,
            self.shutdown,
            self.outage,
            self.meter,
            drain=options.drain,
        )
        supply = Supply(
            options,
            self.crew,
            intake,
            burials,
            Parking(self.queues, parks=parks),
            returns,
            self.ticking,
            self.outage,
            self.meter,
        )
        return returns, supply

    @property
    def connection(self) -> BaseDatabaseWrapper:
        """The connection for claims and settlements, opened when first used."""
        if self._connection is None:
            bell = self.supply.bell
            listens = bell is not None and bell.listens
            self._connection = open_control(self.database, self.shortest_lease, listens=listens)
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
        self.supply.bell = doorbell_for(self.database, self.queues, self.name)
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
        if self.supply.bell is not None:
            self.supply.bell.close()
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
        if gathers := self.returns.gathers():
            self.wakeup.wait(min(seconds, gathers))  # what the crew says meanwhile is read at once
            return
        bell = self.supply.bell
        if bell is None or not self.supply.listening:
            self.crew.wait(self.wakeup, seconds)
            self._linger()
            return
        deaf = bell.deaf_seconds()
        if deaf:  # what comes meanwhile is for the next look
            self.crew.wait(self.wakeup, min(seconds, deaf))
            return
        until = ticks() + seconds
        while self.crew.wait(self.wakeup, until - ticks(), bell.fileno(self.connection)):
            if bell.rings(self.connection):
                self.supply.heard()
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
            self.crew.wait(self.wakeup, min(LOOK_SECONDS, left) if left > 0 else LOOK_SECONDS)

    def _must_watch(self) -> bool:
        """Tell whether a lease ends so soon that a try to reach the database could outlast it."""
        return any(charge.hold.ending for charge in self.crew.charges)

    def turn(self) -> float | None:
        """Do one pass: what has ended, what is due, one claim.

        Returns seconds to wait before the next pass, 0 for none, None when the worker is to end.
        Raises database errors; the loop decides about them.
        """
        self.supply.listening = False
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
            self.supply.forget()
        wait = self._take_in()
        self._look_after_crew()
        self._settle()
        if wait and (gathers := self.returns.gathers()):
            wait = min(wait, gathers)
        return self._at_limit(wait and min(wait, self.ticking.seconds_left()))

    def _look_after_crew(self) -> None:
        """Collect what has ended and keep time limits; asks no database."""
        self.returns.collect()
        now = ticks()
        if now >= self._enforce_at:  # a turn may come with each of thousands of jobs a second
            self._enforce_at = now + _ENFORCE_SECONDS
            enforce(self.crew, self.limits, now, abort=self.shutdown.aborting())

    def _settle(self) -> None:
        if not self.returns.gathers():
            self._end_statements()
            self.returns.settle(self.connection)

    def _take_in(self) -> float | None:
        """Claim and hand over as much as the crew can take; return what `turn` returns."""
        room = self.supply.room()
        self._held_up = True  # before the look: the renewer wakes whoever waits for it
        if self.renewer.failing or not any(room):
            return self.supply.idle()
        self._held_up = False
        if room.free:
            return self.supply.take_now(self.connection, room)
        return self.supply.take_ahead(self.connection, room)

    def _at_limit(self, wait: float | None) -> float | None:
        """Drain when the worker has run for its jobs, its seconds, or out of its memory."""
        options = self.options
        if options.max_seconds is not None and ticks() - self._began >= options.max_seconds:
            self.stop()
        if self.crew.outgrown():
            self.stop()
        if options.max_jobs is not None and self.returns.jobs_run >= options.max_jobs:
            self.stop()
        return wait

    def _wind_down(self) -> float | None:
        """Let running handlers finish; return None when nothing is left, or no time."""
        self.crew.stop()
        self._look_after_crew()  # what solo had waiting has ended with that
        self._settle()
        if self._may_leave():
            return None
        return LOOK_SECONDS

    def _may_leave(self) -> bool:
        """Tell whether a stopping worker may end. Raises what could not be given back in time."""
        if not self.crew.charges and not self.returns:
            return True
        if not self.shutdown.leaving() or self.crew.charges:
            return False
        self.returns.abandon()
        return True

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
