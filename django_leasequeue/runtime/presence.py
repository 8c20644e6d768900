"""Attendance: the worker's row for operators, refreshed every few seconds.

It decides nothing about jobs: a worker whose row cannot be written works on. An operator's wish
that the worker drains is read there.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from django.db import DatabaseError, InterfaceError
from django.db.backends.base.base import BaseDatabaseWrapper

from django_leasequeue.core.presence import (
    Presence,
    announce,
    depart,
    drain_requested,
    refresh,
)
from django_leasequeue.events import log_event
from django_leasequeue.runtime.notices import Notice

__all__ = ["Attendance"]

_EVERY = 5.0


class Attendance:
    """Shows what `presence` returns; called from the renewer's thread.

    `drain` is called, once, when an operator asked the worker to drain.
    """

    def __init__(self, presence: Callable[[], Presence], drain: Callable[[], None]) -> None:
        self._presence = presence
        self._drain = drain
        self._told = False
        self._row: int | None = None
        self._notice = Notice(_EVERY, _refused)

    def show(self, connection: BaseDatabaseWrapper) -> None:
        """Refresh the row if it is time. Raises what means that the database is away."""
        if self._notice.due:
            self._notice.write(connection, lambda: self._show(connection))

    def _show(self, connection: BaseDatabaseWrapper) -> None:
        now = self._presence()
        if self._row is None or not refresh(connection, self._row, now):
            self._row = announce(connection, now)
        if not self._told and drain_requested(connection, self._row, now.name):
            self._told = True
            self._drain()

    def leave(self, connection: BaseDatabaseWrapper) -> None:
        """Note that the worker has stopped, if the database can be reached; raises nothing."""
        for _ in range(2):  # an idle session may have been closed: the second has a new one
            try:
                self._notice.write(connection, lambda: self._leave(connection))
            except (DatabaseError, InterfaceError):
                connection.close()
            else:
                return

    def _leave(self, connection: BaseDatabaseWrapper) -> None:
        if self._row is not None:
            depart(connection, self._row, self._presence().name)


def _refused(error: str) -> None:
    log_event("presence_refused", level=logging.WARNING, error=error)
