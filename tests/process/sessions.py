"""The server's sessions on the test database, seen and ended from outside."""

from __future__ import annotations

from django.db import OperationalError
from django.db.backends.base.base import BaseDatabaseWrapper

from tests.fixtures.leaks import Snapshot
from tests.waiting import wait_until

_NO_UTF8 = 3854


def other_sessions(connection: BaseDatabaseWrapper) -> frozenset[int]:
    """Return the server's numbers of all other sessions; none on SQLite."""
    seen: list[frozenset[int]] = []
    wait_until(lambda: _look(connection, seen))
    return seen[0]


def sever(connection: BaseDatabaseWrapper) -> int:
    """End all other sessions from the server's side; return how many there were."""
    numbers = other_sessions(connection)
    kill = "SELECT pg_terminate_backend(%s)" if connection.vendor == "postgresql" else "KILL %s"
    with connection.cursor() as cursor:
        for number in numbers:
            cursor.execute(kill, [number])
    return len(numbers)


def _look(connection: BaseDatabaseWrapper, seen: list[frozenset[int]]) -> bool:
    try:
        seen.append(Snapshot.take(connection).connections)
    except OperationalError as error:
        # MySQL shows no list while any session's statement is no UTF-8, as one with a token is.
        if error.args[0] != _NO_UTF8:
            raise
        return False
    return True
