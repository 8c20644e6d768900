"""The core's own short transactions: begun, committed and repeated here, nowhere else.

BEGIN and COMMIT are plain statements on a connection in autocommit mode: Django's atomic() costs
MySQL two more round trips, and statements that pass the cursor can be counted and broken by tests.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from time import monotonic
from typing import Any, TypeVar

from django.db import DatabaseError, InterfaceError, transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.utils import CursorWrapper

from django_leasequeue.core.dialect import Trouble, dialect_for, is_unknown_commit, trouble

__all__ = ["CommitUnknown", "ask", "in_transaction", "marks", "repeat", "run", "tagged"]

T = TypeVar("T")

TRIES = 6
#: A worker's own connection begins no further try after so many seconds: its loop comes back by
#: itself, and has handlers to look after meanwhile.
CONTROL_SECONDS = 1.0


class CommitUnknown(Exception):
    """The connection was lost while COMMIT was under way: look up what the server did."""


def tagged(tag: str, sql: str) -> str:
    """Return `sql` with a comment by which a DBA finds it in the slow log."""
    return f"/* leasequeue:{tag} */ {sql}"


def marks(values: Sequence[Any]) -> str:
    """Return as many placeholders as there are values."""
    return ", ".join(["%s"] * len(values))


def run(connection: BaseDatabaseWrapper, work: Callable[[CursorWrapper], T]) -> T:
    """Run `work` in a transaction of its own and return what it returned.

    Deadlocks, lock waits and lost connections roll everything back and repeat `work`, bounded,
    with jitter. Inside the caller's transaction it is a savepoint, and nothing is repeated.
    Raises CommitUnknown when the answer to COMMIT was lost, else the last database error.
    """
    if connection.in_atomic_block:
        with transaction.atomic(using=connection.alias), connection.cursor() as cursor:
            return work(cursor)
    if in_transaction(connection):
        with connection.cursor() as cursor:
            return work(cursor)
    until = _patience_end(connection)
    for tried in range(1, TRIES + 1):
        try:
            return _once(connection, work)
        except (DatabaseError, InterfaceError) as error:
            if tried == TRIES or monotonic() > until or trouble(connection, error) is None:
                raise
            time.sleep(random.uniform(0, 0.01 * 2**tried))
    raise AssertionError("unreachable")


def _patience_end(connection: BaseDatabaseWrapper) -> float:
    control = "leasequeue_session" in vars(connection)
    return monotonic() + CONTROL_SECONDS if control else float("inf")


def _once(connection: BaseDatabaseWrapper, work: Callable[[CursorWrapper], T]) -> T:
    committing = False
    try:
        _connect(connection)
        dialect = dialect_for(connection)
        with connection.cursor() as cursor:
            for statement in (*dialect.prologue(connection), dialect.begin):
                cursor.execute(statement)
            result = work(cursor)
            committing = True
            cursor.execute("COMMIT")
        return result
    except BaseException as error:
        _undo(connection, error)
        if committing and is_unknown_commit(connection, error):
            raise CommitUnknown from error
        raise


def _connect(connection: BaseDatabaseWrapper) -> None:
    """Connect, wholly or not at all: a session that is half prepared has no bounds."""
    if connection.connection is None:
        try:
            connection.ensure_connection()
        except BaseException:
            connection.close()
            raise


def _undo(connection: BaseDatabaseWrapper, error: BaseException) -> None:
    """Leave no transaction open, at the price of the connection if need be."""
    if connection.connection is None:
        return
    if trouble(connection, error) is not Trouble.RECONNECT:
        try:
            with connection.cursor() as cursor:
                cursor.execute("ROLLBACK")
        except (DatabaseError, InterfaceError):
            connection.close()
        return
    connection.close()


def repeat(connection: BaseDatabaseWrapper, statement: Callable[[], T]) -> T:
    """Run one statement that is safe to run again, and run it again after passing trouble.

    Inside the caller's transaction nothing is repeated: after a deadlock all of it is gone, and
    only the caller can begin anew.
    """
    until = _patience_end(connection)
    for tried in range(1, TRIES + 1):
        try:
            if not in_transaction(connection):
                _connect(connection)
            return statement()
        except (DatabaseError, InterfaceError) as error:
            asks = trouble(connection, error)
            if in_transaction(connection):
                raise
            # The caller's next statement is to find a connection that works.
            if asks is Trouble.RECONNECT:
                connection.close()
            elif asks is None:
                connection.close_if_unusable_or_obsolete()  # a packet too large ends it (1153)
            if asks is None or tried == TRIES or monotonic() > until:
                raise
            time.sleep(random.uniform(0, 0.01 * 2**tried))
    raise AssertionError("unreachable")


def in_transaction(connection: BaseDatabaseWrapper) -> bool:
    """Tell whether the caller decides when this connection commits."""
    if connection.connection is None and connection.settings_dict["AUTOCOMMIT"]:
        return connection.in_atomic_block  # Django would connect to answer
    return connection.in_atomic_block or not connection.get_autocommit()


def ask(connection: BaseDatabaseWrapper, sql: str, params: Sequence[Any] = ()) -> list[Any]:
    """Return the rows of one reading statement, repeated after passing trouble."""

    def read() -> list[Any]:
        with connection.cursor() as cursor:
            cursor.execute(sql, params)
            rows: list[Any] = cursor.fetchall()
            return rows

    return repeat(connection, read)
