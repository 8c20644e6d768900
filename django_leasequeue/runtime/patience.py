"""Patience: how long what the queue asks on a handler's own connection may go unanswered.

Such a connection has the bounds of the project's settings. PostgreSQL's driver has none for an
answer that never comes, nor has MySQL's unless it is told: behind a wire that went silent a handler
would stand in the queue's own statement for ever, its lease renewed all the while.
"""

from __future__ import annotations

import os
import threading
from types import TracebackType
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.signals import connection_created

from django_leasequeue.core.sessions import shut, wire_of
from django_leasequeue.runtime.clock import ticks
from django_leasequeue.runtime.holds import Hold

__all__ = ["Patience", "end_overdue"]

_lock = threading.Lock()
_waiting: set[Patience] = set()


class Patience:
    """Bounds a block's waits for answers on `connection`, in this thread, to `seconds` altogether.

    With a `hold` it lasts for as long as a transaction has prolonged the lease, at least. After
    that the connection is shut, once, and the driver raises what it does when one is lost. It may
    be entered again, and then starts anew.
    """

    def __init__(
        self, connection: BaseDatabaseWrapper, seconds: float, hold: Hold | None = None
    ) -> None:
        self._connection, self._seconds, self._hold = connection, seconds, hold
        self._until = 0.0
        self._wire: int | None = None

    def __enter__(self) -> None:
        self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Bound what follows, from now on."""
        self.stop()
        self._until = ticks() + self._seconds
        self._wire = wire_of(self._connection)
        with _lock:
            _waiting.add(self)

    def restart(self) -> None:
        """Bound what follows, from now on, where something is bounded already."""
        self._until = ticks() + self._seconds

    def stop(self) -> None:
        """Bound nothing any more; afterwards the connection is not shut."""
        with _lock:
            _waiting.discard(self)
        wire, self._wire = self._wire, None
        if wire is not None:
            os.close(wire)

    def follow(self, connection: BaseDatabaseWrapper) -> None:
        """Take note that a connection was opened, if it is this one. The caller has the lock."""
        if connection is self._connection and self._wire is None:
            self._wire = wire_of(connection)

    def end_if_overdue(self, now: float) -> None:
        """Shut the connection if the time is over. The caller has the lock."""
        if now > max(self._until, self._hold.held_until if self._hold else 0.0):
            _waiting.discard(self)
            if self._wire is not None:
                shut(self._wire)


def end_overdue() -> None:
    """Shut the connections that have kept their threads waiting for too long.

    Called again and again by the thread that keeps the time in this process.
    """
    if not _waiting:
        return
    now = ticks()
    with _lock:
        for patience in list(_waiting):
            patience.end_if_overdue(now)


def _opened(*, connection: BaseDatabaseWrapper, **kwargs: Any) -> None:
    with _lock:
        for patience in _waiting:
            patience.follow(connection)


connection_created.connect(_opened, dispatch_uid="leasequeue_patience")
