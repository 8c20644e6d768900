"""The server's sessions on the test database, seen and ended from outside."""

from __future__ import annotations

from contextlib import suppress

from django.db import OperationalError
from django.db.backends.base.base import BaseDatabaseWrapper

from tests.fixtures.leaks import Snapshot


def other_sessions(connection: BaseDatabaseWrapper) -> frozenset[int]:
    """Return the server's numbers of all other sessions; none on SQLite."""
    return Snapshot.take(connection).connections


def sever(connection: BaseDatabaseWrapper) -> int:
    """End all other sessions from the server's side; return how many there were."""
    numbers = other_sessions(connection)
    kill = "SELECT pg_terminate_backend(%s)" if connection.vendor == "postgresql" else "KILL %s"
    with connection.cursor() as cursor:
        for number in numbers:
            with suppress(OperationalError):  # it has just ended by itself
                cursor.execute(kill, [number])
    return len(numbers)
