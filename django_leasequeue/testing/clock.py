"""The queue's clock in a test: every time of the queue is the database's, and can be moved here."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import datetime, timedelta

from django.db import connections
from django.utils import timezone

from django_leasequeue.conf import get_conf
from django_leasequeue.core.dialect import dialect_for
from django_leasequeue.core.transaction import ask
from django_leasequeue.retry import as_seconds

__all__ = ["QueueClock", "advance", "freeze"]


class QueueClock:
    """A clock that stands still until `advance` is called; `now` is an aware UTC datetime."""

    def __init__(self, moment: datetime, alias: str) -> None:
        self.now = moment
        self._dialect = dialect_for(connections[alias])
        self._stack = ExitStack()

    def advance(self, delay: float | timedelta) -> datetime:
        """Let the queue's time be later by `delay`, seconds or a timedelta; return what it is now.

        Raises ValueError for what is no delay.
        """
        return self.move_to(self.now + timedelta(seconds=as_seconds(delay)))

    def move_to(self, moment: datetime) -> datetime:
        """Let the queue's time be `moment`, an aware datetime; return it.

        Raises ValueError for a naive one.
        """
        if timezone.is_naive(moment):
            raise ValueError("the moment has no time zone: use an aware datetime")
        self.close()
        self.now = moment
        self._stack.enter_context(self._dialect.clock(stopped_at=moment))
        return moment

    def close(self) -> None:
        """Let the queue's time be the database's again. Raises nothing."""
        self._stack.close()


@contextmanager
def freeze(moment: datetime | None = None, *, using: str | None = None) -> Iterator[QueueClock]:
    """Stop the queue's clock inside the block: at `moment` (aware), or at the database's time.

    Due times, leases, expiries and stamps of the queue's statements in this process go by it; the
    project's own clock, and rows that plain SQL inserts, do not. Yields the clock: its `advance`
    makes delayed jobs and retries due. Raises ValueError for a naive moment.
    """
    alias = using or get_conf().DATABASE
    clock = QueueClock(timezone.now(), alias)
    clock.move_to(_database_time(alias) if moment is None else moment)
    try:
        yield clock
    finally:
        clock.close()


@contextmanager
def advance(delay: float | timedelta, *, using: str | None = None) -> Iterator[None]:
    """Let the queue's time be later by `delay` inside the block, and go on from there.

    It is seconds or a timedelta. Raises ValueError for what is no delay.
    """
    dialect = dialect_for(connections[using or get_conf().DATABASE])
    with dialect.clock(ahead=as_seconds(delay)):
        yield


def _database_time(alias: str) -> datetime:
    connection = connections[alias]
    dialect = dialect_for(connection)
    ((moment,),) = ask(connection, f"SELECT {dialect.select_time(dialect.stamp)}")
    found = dialect.as_utc(moment)
    assert found is not None  # noqa: S101
    return found
