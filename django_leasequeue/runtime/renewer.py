"""The renewer: a thread with its own connection that keeps the held leases alive.

Every lease is renewed each third of its length; every two seconds all are read again, so that a
cancelled job is known soon. No error ends the thread: it is logged, and the next beat goes out on
a fresh connection. While it fails, `failing` keeps the worker from claiming.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Sequence

from django.db.backends.base.base import BaseDatabaseWrapper

from django_leasequeue.core.lease import Lease, Standing, renew, standing
from django_leasequeue.events import log_event
from django_leasequeue.runtime.clock import ticks
from django_leasequeue.runtime.connections import open_control
from django_leasequeue.runtime.holds import Hold, Holds
from django_leasequeue.runtime.presence import Attendance
from django_leasequeue.runtime.progress import ProgressBoard

__all__ = ["Renewer"]

_BEAT = 0.5
_AGAIN = 0.5
_READ_EVERY = 2.0
#: A failure that lasts is said even where no lease is due: while it lasts, nothing is claimed.
_SAY_SECONDS = 5.0


class Renewer:
    """Renews the holds of one worker, and shows its presence, until it is stopped."""

    def __init__(
        self,
        alias: str,
        lease: float,
        holds: Holds,
        attendance: Attendance,
        on_beat: Callable[[], None],
        on_working: Callable[[], None],
    ) -> None:
        """`lease` is seconds; `on_beat` is called at each beat, in the thread.

        `on_working` is called when it can renew, at first and after a failure.
        """
        self._alias = alias
        self._lease = lease
        self._holds = holds
        self._attendance = attendance
        self._board = ProgressBoard(holds.all)
        self._on_beat = on_beat
        self._on_working = on_working
        self._stop = threading.Event()
        self._failing = False
        self._failing_since = 0.0
        self._read_at = 0.0
        self._beat_seconds = min(_BEAT, lease / 8)
        self._connection: BaseDatabaseWrapper | None = None
        self._thread = threading.Thread(target=self._run, name="leasequeue-renewer", daemon=True)

    @property
    def failing(self) -> bool:
        """Tell whether leases could not be renewed now: a job claimed now might be lost."""
        return self._failing

    def start(self) -> None:
        """Start the thread; its connection is opened before any claim."""
        self._fail()
        self._thread.start()

    def stop(self) -> None:
        """End the thread and its connection; returns when both are gone."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        logged = False
        try:
            while True:
                self._on_beat()
                logged = self._beat(logged=logged)
                if self._stop.wait(self._beat_seconds):
                    break
            if self._connection is not None and not self._failing:
                self._attendance.leave(self._connection)
        finally:
            self._close()

    def _beat(self, *, logged: bool) -> bool:
        """Do what is due; return whether the present failure has been logged."""
        due = self._holds.due(ticks())
        try:
            self._work(self._open(), due)
        except Exception as error:  # noqa: BLE001  (a silent end would lose every lease)
            self._close()
            self._fail()
            for hold in due:
                hold.renew_at = ticks() + min(_AGAIN, hold.seconds / 12)
            say = bool(due) or ticks() - self._failing_since > _SAY_SECONDS
            if say and not logged:  # one line at the start, not one a beat
                log_event("renewal_failed", level=logging.WARNING, error=type(error).__qualname__)
            return logged or say
        if self._failing:
            self._failing = False
            self._on_working()
        return False

    def _fail(self) -> None:
        if not self._failing:
            self._failing, self._failing_since = True, ticks()

    def _open(self) -> BaseDatabaseWrapper:
        if self._connection is None:
            self._connection = open_control(self._alias, self._lease)
        if self._failing:
            self._connection.ensure_connection()
        return self._connection

    def _work(self, connection: BaseDatabaseWrapper, due: Sequence[Hold]) -> None:
        for seconds in {hold.seconds for hold in due}:
            self._renew(connection, [hold for hold in due if hold.seconds == seconds], seconds)
        if ticks() >= self._read_at:
            self._read_again(connection, self._holds.all())
            self._read_at = ticks() + _READ_EVERY
        self._board.show(connection)
        self._attendance.show(connection)

    def _renew(
        self, connection: BaseDatabaseWrapper, holds: Sequence[Hold], seconds: float
    ) -> None:
        since = ticks()
        renewal = renew(connection, [hold.lease for hold in holds], seconds)
        renewed = set(renewal.renewed)
        log_event(
            "leases_renewed",
            level=logging.DEBUG,
            count=len(renewed),
            lost=len(renewal.lost),
            pending=len(renewal.pending),
        )
        for hold in holds:
            if hold.lease in renewed:
                hold.extend(since)
            else:
                hold.renew_at = ticks() + min(_AGAIN, seconds / 12)
        if renewal.lost:
            self._read_again(connection, [h for h in holds if h.lease in set(renewal.lost)])

    def _read_again(self, connection: BaseDatabaseWrapper, holds: Iterable[Hold]) -> None:
        """Mark the holds whose lease has ended by anything but this worker's own settlement."""
        by_lease: dict[Lease, Hold] = {hold.lease: hold for hold in holds}
        for lease, how in standing(connection, list(by_lease)).items():
            hold = by_lease[lease]
            hold.completed = hold.completed or how is Standing.COMPLETED
            hold.cancelled = how is Standing.CANCELLED
            hold.lost = how is Standing.LOST

    def _close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()
