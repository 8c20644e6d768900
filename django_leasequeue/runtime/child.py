"""The child: a process that runs handlers, in its main thread or in some threads.

A reader thread listens to control; when control is gone, the child kills its process group.
"""

from __future__ import annotations

import logging
import os
import select
import signal
import socket
import sys
import threading
import traceback
from collections import deque
from collections.abc import Callable
from contextlib import ExitStack, suppress
from typing import Any, NoReturn

from django.db import connections
from django.db.backends.signals import connection_created

from django_leasequeue.core.dialect import dialect_for
from django_leasequeue.core.lease import Lease
from django_leasequeue.logs import WorkerLogs
from django_leasequeue.runtime.aftermath import Ran
from django_leasequeue.runtime.channel import Channel
from django_leasequeue.runtime.clock import ticks
from django_leasequeue.runtime.desk import Desk, Piece
from django_leasequeue.runtime.executor import Executor
from django_leasequeue.runtime.interrupts import SIGNAL, Interrupts
from django_leasequeue.runtime.messages import (
    Ack,
    Acks,
    Assigned,
    Interrupt,
    Quit,
    Ready,
    Recall,
    Report,
    Session,
    Started,
    Stopping,
    Trust,
)
from django_leasequeue.runtime.orphans import die_with_parent, kill_group, lead_group
from django_leasequeue.runtime.patience import end_overdue
from django_leasequeue.runtime.preload import ChildPlan
from django_leasequeue.runtime.slots import UNSTARTED, Slot
from django_leasequeue.signals import jobs_claimed

__all__ = ["Child"]

_LOOK_SECONDS = 0.5
_HURRIED_SECONDS = 0.05
#: How long word of a start may have taken on its way, and the job still be this child's.
_WORD_SECONDS = 0.2


class Child:
    """One child process, from its start to its end."""

    def __init__(self, sock: socket.socket, plan: ChildPlan) -> None:
        lead_group()
        die_with_parent()
        self._plan = plan
        self._channel = Channel(sock, blocking=True)
        self._desk = Desk()
        self._stopping = False
        self._outgrown = False
        self._sessions: deque[Session] = deque()
        self._executors = [self._executor() for _ in range(plan.threads)]
        self._on_message: dict[type[Any], Callable[[Any], None]] = {
            Assigned: self._assigned,
            Trust: self._desk.trust,
            Interrupt: self._desk.interrupt,
            Recall: self._recall,
            Stopping: self._stop,
            Acks: lambda message: self._desk.acknowledge(message.acks),
            Quit: lambda message: self._desk.close(),
        }

    def _executor(self) -> Executor:
        return Executor(self._plan.database, Interrupts(), lambda: self._stopping)

    def run(self) -> NoReturn:
        """Work until control says to end, or is gone; ends the process."""
        self._take_signals()
        for alias, name in self._plan.names.items():
            connections[alias].settings_dict["NAME"] = name
        connection_created.connect(self._tell_session, dispatch_uid="leasequeue_child")
        with ExitStack() as stack:
            if self._plan.log_format is not None:
                stack.enter_context(WorkerLogs(self._plan.log_format))
            threading.Thread(target=self._read, name="leasequeue-reader", daemon=True).start()
            self._channel.send(Ready())
            self._work()
        _end()

    def _take_signals(self) -> None:
        # Handlers, not SIG_IGN: programs that a job starts would inherit that.
        for name in ("SIGTERM", "SIGINT", "SIGHUP"):
            if hasattr(signal, name):
                signal.signal(getattr(signal, name), _ignore)
        if SIGNAL is not None:
            signal.signal(SIGNAL, self._executors[0].interrupts.on_signal)

    def _work(self) -> None:
        ends: dict[Lease, Ran] = {}
        weighs = self._plan.max_bytes > 0
        slots = [
            Slot(one, sender=Child, unacknowledged=ends, weighs=weighs) for one in self._executors
        ]
        if len(slots) == 1:
            self._serve(slots[0])
            return
        threads = [
            threading.Thread(
                target=self._serve_or_end, args=(slot,), name=f"leasequeue-slot-{number}"
            )
            for number, slot in enumerate(slots, 1)
        ]
        for thread in threads:
            thread.daemon = True
            thread.start()
        for thread in threads:
            thread.join()

    def _serve_or_end(self, slot: Slot) -> None:
        """End this process when a slot fails: its job would stay with nobody, renewed for ever."""
        try:
            self._serve(slot)
        except BaseException:  # noqa: BLE001  (whatever it is, a new child goes on)
            traceback.print_exc()
            kill_group(os.getpid())

    def _serve(self, slot: Slot) -> None:
        """Run what is on the desk, one after the other, until it is closed."""
        ended: list[Report] = []
        while (piece := self._next(ended)) is not None:
            if isinstance(piece, Ack):
                slot.acknowledge(piece)
                continue
            report = slot.run(piece.assignment, piece.hold, self._begin(piece, slot, ended))
            if 0 < self._plan.max_bytes < report.memory:
                self._outgrown = True
            if report.listened:
                self._desk.await_ack(report.lease)
            ended.append(report)
            self._desk.drop(piece)
        connections.close_all()

    def _next(self, ended: list[Report]) -> Piece | Ack | None:
        """Return what is next, waiting for it; None at the end.

        The report of what has just ended goes with the word of the next start, which comes at
        once when a job waits: one message, and control wakes once. It waits for nothing else.
        """
        piece = self._desk.take_waiting()
        if ended and (not isinstance(piece, Piece) or jobs_claimed.has_listeners(Child)):
            self._channel.send(*ended)
            ended.clear()
        return piece or self._desk.take()

    def _begin(self, piece: Piece, slot: Slot, ended: list[Report]) -> Callable[[], bool]:
        def begin() -> bool:
            # Control learns of a size too late for what waits here already.
            if self._outgrown or not self._desk.begin(piece, slot):
                return False
            self._channel.send(*ended, Started(piece.assignment.job.lease))
            ended.clear()
            # Had this thread stood still since, control would have given the job to somebody else.
            return ticks() < piece.start_by + _WORD_SECONDS

        return begin

    def _read(self) -> None:
        """Listen to control; end this process with all that it started when control is gone."""
        try:
            while not self._channel.closed:
                look = _HURRIED_SECONDS if self._desk.hurries() else _LOOK_SECONDS
                ready, _, _ = select.select([self._channel], [], [], look)
                for message in self._channel.receive() if ready else ():
                    self._on_message[type(message)](message)
                self._desk.end_untrusted()
                end_overdue()
                if self._desk.outlived():
                    break  # another worker may have the job now
                for news in self._desk.news():
                    self._channel.send(news)
                while self._sessions:
                    self._channel.send(self._sessions.popleft())
        finally:
            kill_group(os.getpid())

    def _assigned(self, message: Assigned) -> None:
        self._desk.put(message.assignments, message.start_by)

    def _recall(self, message: Recall) -> None:
        for piece in self._desk.recall():
            self._channel.send(Report(piece.assignment.job.lease, UNSTARTED))

    def _stop(self, message: Stopping) -> None:
        self._stopping = True

    def _tell_session(self, *, connection: Any, **kwargs: Any) -> None:
        """Tell control which session to end a statement in, should this child be killed."""
        if connection.alias == self._plan.database:
            session_id = dialect_for(connection).session_id(connection)
            if session_id is not None:
                # Sent by the reader: an interrupt here must not cut a message short.
                self._sessions.append(Session(threading.get_ident(), session_id))


def _ignore(number: int, frame: object) -> None:
    """Stop signals are for control, which tells its children what to do."""


def _end() -> NoReturn:
    """End now: threads that a handler left behind are not waited for."""
    try:
        logging.shutdown()
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError, AttributeError):  # closed by a handler
                stream.flush()
    finally:
        os._exit(0)
