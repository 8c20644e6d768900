"""Outages: the database is gone, the worker waits with patience that ends."""

from __future__ import annotations

import logging
import random
from dataclasses import dataclass

from django.db import DatabaseError, InterfaceError
from django.db.backends.base.base import BaseDatabaseWrapper

from django_leasequeue.core.dialect import trouble
from django_leasequeue.core.reasons import describe
from django_leasequeue.core.transaction import CommitUnknown
from django_leasequeue.events import log_event
from django_leasequeue.runtime.clock import ticks

__all__ = ["Outage"]

_LONGEST_WAIT = 5.0


@dataclass(slots=True)
class Outage:
    """Bounded backoff with one log line at the start of an outage and one at its end."""

    limit: float
    _since: float | None = None
    _waits: int = 0

    @property
    def ongoing(self) -> bool:
        """Tell whether the database was away when it was last asked."""
        return self._since is not None

    def covers(self, project: BaseDatabaseWrapper, error: BaseException) -> bool:
        """Tell whether waiting may help against `error`, and the limit is not reached yet."""
        if isinstance(error, CommitUnknown):
            passing = True
        elif isinstance(error, DatabaseError | InterfaceError):
            passing = trouble(project, error) is not None
        else:
            passing = False
        if not passing:
            return False
        if self._since is None:
            self._since = ticks()
            log_event("database_lost", level=logging.WARNING, error=describe(project, error))
        return ticks() - self._since < self.limit

    def wait_seconds(self) -> float:
        """Return how long to wait before the next try."""
        self._waits += 1
        longest = min(_LONGEST_WAIT, 0.1 * 2.0 ** min(self._waits, 10))
        return random.uniform(longest / 2, longest)

    def over(self) -> None:
        """Note that the database answers."""
        if self._since is not None:
            log_event("database_back", elapsed_ms=int((ticks() - self._since) * 1000))
            self._since, self._waits = None, 0
