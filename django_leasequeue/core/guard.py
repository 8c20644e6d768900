"""Guards of a handler's transaction: nothing half-done is committed as a success.

On MySQL and MariaDB a swallowed deadlock has rolled everything back, a swallowed lock wait half of
it, and DDL has committed; the next COMMIT "succeeds" all the same. A savepoint tells: it is gone
with its transaction. It is set before the first statement that may be one of those, and before the
first savepoint of the block: one that is set later goes when that one does.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from django.db import DatabaseError
from django.db.backends.base.base import BaseDatabaseWrapper

from django_leasequeue.core.dialect import dialect_for, trouble
from django_leasequeue.exceptions import JobError

__all__ = ["guarded"]

_OWN = "/* leasequeue:"
#: Statements that begin so end no transaction (MySQL manual, "Statements That Cause an Implicit
#: Commit"), unless they fail, which is seen. Whatever else there is may, but for SAVEPOINT.
_HARMLESS = re.compile(
    r"\s*(?:SELECT|INSERT|UPDATE|DELETE|REPLACE|WITH|RELEASE SAVEPOINT"
    r"|ROLLBACK TO SAVEPOINT)\b[^;]*;?\s*\Z",
    re.IGNORECASE,
)


@contextmanager
def guarded(connection: BaseDatabaseWrapper) -> Iterator[Callable[[], None]]:
    """Watch the open transaction; the yielded function is called last, before the commit.

    It raises when the transaction must not be committed: a database error was swallowed outside a
    savepoint, `set_rollback(True)` was called, or the transaction ended behind Django's back.
    Nor does `set_rollback(False)` help after an error that may have ended it.
    """
    swallowed: list[DatabaseError] = []
    dialect = dialect_for(connection)
    marked: list[bool] = []
    ended: list[bool] = []

    def watch(
        execute: Callable[..., Any], sql: Any, params: Any, many: bool, context: dict[str, Any]
    ) -> Any:
        if dialect.silent_ends and not marked and not _is_harmless(sql):
            marked.append(True)
            _execute(connection, "SAVEPOINT leasequeue_guard")
        try:
            return execute(sql, params, many, context)
        except DatabaseError as error:
            # The core handles its statements' errors itself, but for those that end it all.
            if not _is_own(sql) or trouble(connection, error) is not None:
                # What Django does for the ORM's own writes; an inner atomic() with a savepoint
                # takes it back when it rolls back.
                connection.needs_rollback = True
                swallowed.append(error)
                # With no savepoint set there is nothing that tells later what the server has kept.
                ended.append(not marked and dialect.code_of(error) in dialect.ending_codes)
            raise

    def check() -> None:
        if connection.needs_rollback or any(ended):
            raise JobError(
                "a database error was swallowed inside the transaction, or it was "
                "marked for rollback"
            ) from (swallowed[-1] if swallowed else None)
        if marked:
            _release(connection)

    with connection.execute_wrapper(watch):
        yield check


def _is_own(sql: Any) -> bool:
    # The drivers take bytes, and psycopg's composed statements, too.
    return isinstance(sql, str) and sql.startswith(_OWN)


def _is_harmless(sql: Any) -> bool:
    return _is_own(sql) or (isinstance(sql, str) and _HARMLESS.match(sql) is not None)


def _release(connection: BaseDatabaseWrapper) -> None:
    try:
        _execute(connection, "RELEASE SAVEPOINT leasequeue_guard")
    except DatabaseError as error:
        if trouble(connection, error) is not None:
            raise
        raise JobError(
            "the transaction was ended inside the block, and what it wrote before may be "
            "committed: DDL does that on this server, as LOCK TABLES and a COMMIT by hand do"
        ) from error


def _execute(connection: BaseDatabaseWrapper, sql: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(f"{_OWN}guard */ {sql}")
