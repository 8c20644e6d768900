"""What a database error asks for: the whole list of the design, by each server's own codes."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from django.db import DataError, IntegrityError, InterfaceError, OperationalError

from django_leasequeue.core.dialect import Trouble, dialect_for, trouble

MYSQL = SimpleNamespace(vendor="mysql", mysql_is_mariadb=False)
MARIADB = SimpleNamespace(vendor="mysql", mysql_is_mariadb=True)
POSTGRESQL = SimpleNamespace(vendor="postgresql")
SQLITE = SimpleNamespace(vendor="sqlite")


def postgres_error(kind: type[Exception], state: str | None) -> Exception:
    error = kind("told by the server")
    error.__cause__ = Exception()
    if state is not None:
        error.__cause__.sqlstate = state  # type: ignore[attr-defined]
    return error


@pytest.mark.parametrize("connection", [MYSQL, MARIADB])
@pytest.mark.parametrize(
    ("asks", "codes"),
    [
        (Trouble.REPEAT, [1213, 1205, 1020, 3572, 3101, 1180, 1317, 1969, 3024]),
        (Trouble.RECONNECT, [2002, 2003, 2006, 2013, 1047, 1053, 1290, 3100, 4031, 1040, 1927]),
        (None, [1062, 4025, 1048, 1064, 1142, 1146, 1153, 1406, 3140, None]),
    ],
)
def test_mysql_and_mariadb(connection, asks, codes):
    for code in codes:
        error = OperationalError(code, "told by the server") if code else OperationalError()
        assert trouble(connection, error) is asks, code


@pytest.mark.parametrize(
    ("asks", "states"),
    [
        (Trouble.REPEAT, ["40001", "40P01", "55P03", "57014"]),
        (Trouble.RECONNECT, ["08000", "08003", "08006", "57P01", "57P02", "57P03", None]),
    ],
)
def test_postgresql(asks, states):
    for state in states:
        assert trouble(POSTGRESQL, postgres_error(OperationalError, state)) is asks, state


def test_postgresql_errors_that_repeating_cannot_help():
    assert trouble(POSTGRESQL, postgres_error(IntegrityError, "23505")) is None
    assert trouble(POSTGRESQL, postgres_error(DataError, "22P05")) is None
    assert trouble(POSTGRESQL, postgres_error(IntegrityError, None)) is None
    assert trouble(POSTGRESQL, InterfaceError("the connection is closed")) is Trouble.RECONNECT


def test_sqlite():
    assert trouble(SQLITE, OperationalError("database is locked")) is Trouble.REPEAT
    assert trouble(SQLITE, OperationalError("database table is locked: x")) is Trouble.REPEAT
    assert trouble(SQLITE, OperationalError("disk I/O error")) is None
    assert trouble(SQLITE, IntegrityError("UNIQUE constraint failed: a.b")) is None


@pytest.mark.parametrize("connection", [MYSQL, POSTGRESQL, SQLITE])
def test_what_is_no_database_error(connection):
    assert trouble(connection, ValueError(1213)) is None
    assert trouble(connection, KeyboardInterrupt()) is None


@pytest.mark.parametrize(
    ("connection", "error", "duplicate"),
    [
        (MYSQL, IntegrityError(1062, "Duplicate entry"), True),
        (MARIADB, IntegrityError(4025, "CONSTRAINT `payload` failed"), False),
        (MYSQL, IntegrityError(1048, "Column cannot be null"), False),
        (MYSQL, IntegrityError(1452, "foreign key"), False),
        (POSTGRESQL, postgres_error(IntegrityError, "23505"), True),
        (POSTGRESQL, postgres_error(IntegrityError, "23502"), False),
        (SQLITE, IntegrityError("UNIQUE constraint failed: leasequeue_job.live_key"), True),
        (SQLITE, IntegrityError("CHECK constraint failed: payload"), False),
    ],
)
def test_only_a_duplicate_is_a_duplicate(connection, error, duplicate):
    """Case C8."""
    assert dialect_for(connection).is_duplicate(error) is duplicate


@pytest.mark.parametrize(
    ("connection", "error", "unknown"),
    [
        (MYSQL, OperationalError(2013, "Lost connection"), True),
        (MYSQL, OperationalError(3100, "Error on observer"), True),
        (MYSQL, OperationalError(1180, "Got error 149 - 'Lock deadlock'"), False),
        (MARIADB, OperationalError(1180, "Not connected to Primary Component"), True),
        (MARIADB, OperationalError(1213, "Deadlock"), False),
        (POSTGRESQL, postgres_error(OperationalError, None), True),
        (POSTGRESQL, postgres_error(OperationalError, "57P01"), True),
        (POSTGRESQL, postgres_error(OperationalError, "40001"), False),
        (SQLITE, OperationalError("database is locked"), False),
    ],
)
def test_what_a_failing_commit_leaves_open(connection, error, unknown):
    assert dialect_for(connection).is_unknown_commit(error) is unknown


def test_a_database_that_is_not_supported():
    with pytest.raises(NotImplementedError, match="MySQL, MariaDB, PostgreSQL and SQLite"):
        dialect_for(SimpleNamespace(vendor="oracle"))
