"""The renewer: a thread with its own connection that keeps the held leases alive.

Every lease is renewed each third of its length. No error ends the thread: it is logged, and the
next beat goes out on a fresh connection.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence

from django.db.backends.base.base import BaseDatabaseWrapper

from django_leasequeue.core.lease import renew
from django_leasequeue.events import log_event
from django_leasequeue.runtime.clock import ticks
from django_leasequeue.runtime.connections import open_control
from django_leasequeue.runtime.holds import Hold, Holds

__all__ = ["Renewer"]

_BEAT = 0.5
_AGAIN = 0.5


class Renewer:
    """Renews the holds of one worker until it is stopped."""

    def __init__(self, alias: str, lease: float, holds: Holds, on_beat: Callable[[], None]) -> None:
        self._alias = alias
        self._lease = lease
        self._holds = holds
        self._on_beat = on_beat
        self._stop = threading.Event()
        self._failing = False
        self._beat_seconds = min(_BEAT, lease / 8)
        self._connection: BaseDatabaseWrapper | None = None
        self._thread = threading.Thread(target=self._run, name="leasequeue-renewer", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """End the thread and its connection; returns when both are gone."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        try:
            while not self._stop.wait(self._beat_seconds):
                self._on_beat()
                self._beat()
        finally:
            self._close()

    def _beat(self) -> None:
        due = self._holds.due(ticks())
        if not due:
            return
        try:
            if self._connection is None:
                self._connection = open_control(self._alias, self._lease)
            for seconds in {hold.seconds for hold in due}:
                group = [hold for hold in due if hold.seconds == seconds]
                self._renew(self._connection, group, seconds)
        except Exception as error:  # noqa: BLE001  (a silent end would lose every lease)
            self._close()
            for hold in due:
                hold.renew_at = ticks() + min(_AGAIN, hold.seconds / 12)
            if not self._failing:  # one line at the start, not one a beat
                log_event("renewal_failed", level=logging.WARNING, error=type(error).__qualname__)
            self._failing = True
        else:
            self._failing = False

    def _renew(
        self, connection: BaseDatabaseWrapper, holds: Sequence[Hold], seconds: float
    ) -> None:
        since = ticks()
        renewal = renew(connection, [hold.lease for hold in holds], seconds)
        renewed, lost = set(renewal.renewed), set(renewal.lost)
        log_event(
            "leases_renewed",
            level=logging.DEBUG,
            count=len(renewed),
            lost=len(lost),
            pending=len(renewal.pending),
        )
        for hold in holds:
            if hold.lease in renewed:
                hold.extend(since)
            elif hold.lease in lost:
                hold.lost = True
                self._holds.drop(hold.lease)
            else:
                hold.renew_at = ticks() + min(_AGAIN, seconds / 12)

    def _close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()
