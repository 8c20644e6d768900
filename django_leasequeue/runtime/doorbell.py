"""The doorbell: what ends an idle worker's wait when a job was enqueued, as WAKEUP says."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Protocol

from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper

from django_leasequeue.conf import get_conf
from django_leasequeue.core.lanes import ALL_QUEUES
from django_leasequeue.core.listening import Listening, can_listen
from django_leasequeue.core.wake_workers import ANY_QUEUE
from django_leasequeue.events import log_event
from django_leasequeue.nudges import NudgeSocket, folder_for
from django_leasequeue.runtime.clock import ticks

__all__ = ["Doorbell", "doorbell_for"]

#: After having heard of a job in vain a worker hears nothing for so long: others were faster.
_DEAF_SECONDS = 0.05
#: Or for so many times as long as that look took: there may be thousands of queues.
_COST = 3.0


class Source(Protocol):
    """Where names of queues come from."""

    def fileno(self, connection: BaseDatabaseWrapper) -> int | None:
        """Return what becomes readable, if there is such a thing now."""

    def read(self, connection: BaseDatabaseWrapper) -> set[str]:
        """Return what has come since the last call."""

    def close(self) -> None:
        """Let go of it."""


class Doorbell:
    """Rings for the queues of one worker. Between two looks at the queues it may ring once.

    `listens`: control's own session has to LISTEN for it.
    """

    def __init__(self, source: Source, queues: Sequence[str], *, listens: bool) -> None:
        self.listens = listens
        self._source = source
        self._queues = frozenset(queues)
        self._deaf_until = self._looked_at = 0.0
        self._rung = False

    def fileno(self, connection: BaseDatabaseWrapper) -> int | None:
        """Return what to wait for beside everything else; None if nothing."""
        return None if self.deaf_seconds() else self._source.fileno(connection)

    def deaf_seconds(self) -> float:
        """Return for how long it hears nothing yet; 0 if it does."""
        return max(0.0, self._deaf_until - ticks())

    def rings(self, connection: BaseDatabaseWrapper) -> bool:
        """Tell whether it has rung for this worker; what concerns other queues is forgotten."""
        if self.deaf_seconds():
            return False
        self._rung = self._concerns(self._source.read(connection))
        return self._rung

    def before_look(self, connection: BaseDatabaseWrapper) -> bool:
        """Take what has come so far; tell whether only a look everywhere is sure to see those jobs.

        After a ring the look that follows is one.
        """
        self._looked_at = ticks()
        heard = self._concerns(self._source.read(connection))
        fresh = heard and not self._rung
        self._rung = self._rung or heard
        return fresh

    def after_look(self, *, found: bool) -> None:
        """Note what the look came to."""
        if self._rung and not found:
            now = ticks()
            self._deaf_until = now + max(_DEAF_SECONDS, _COST * (now - self._looked_at))
        self._rung = False

    def _concerns(self, heard: set[str]) -> bool:
        if ALL_QUEUES in self._queues:
            return bool(heard)
        return not self._queues.isdisjoint(heard) or ANY_QUEUE in heard

    def close(self) -> None:
        """Hear nothing any more."""
        self._source.close()


class _Nudges:
    """A socket of its own, to which others on this host write."""

    def __init__(self, database: str) -> None:
        name = str(connections[database].settings_dict["NAME"])
        self._socket = NudgeSocket(folder_for(name, get_conf().NUDGE_FOLDER))

    def fileno(self, connection: BaseDatabaseWrapper) -> int | None:
        return self._socket.fileno()

    def read(self, connection: BaseDatabaseWrapper) -> set[str]:
        return self._socket.read()

    def close(self) -> None:
        self._socket.close()


class _Notifications(Listening):
    """The notifications of the server, on control's own session."""

    def close(self) -> None:
        """The session is closed by whoever opened it."""


def doorbell_for(database: str, queues: Sequence[str], worker: str) -> Doorbell | None:
    """Return the worker's doorbell as the setting WAKEUP says; None where it only polls.

    Logs `wakeup_refused` where it cannot have one: it polls then.
    """
    how = get_conf().WAKEUP
    if how == "notify" and can_listen(connections[database]):
        return Doorbell(_Notifications(), queues, listens=True)
    if how != "nudge":
        return None
    try:
        return Doorbell(_Nudges(database), queues, listens=False)
    except OSError as error:
        log_event(
            "wakeup_refused", level=logging.WARNING, worker=worker, error=type(error).__qualname__
        )
        return None
