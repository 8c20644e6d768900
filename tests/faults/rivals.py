"""Rival sessions: one holds a row, the other is seen blocked, not assumed to be."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Generic, TypeVar

from django.db import OperationalError
from django.db.backends.base.base import BaseDatabaseWrapper

from tests.waiting import wait_until

T = TypeVar("T")

_BLOCKED = {
    "mariadb": (
        "SELECT COUNT(*) FROM information_schema.innodb_trx t"
        " WHERE t.trx_state = 'LOCK WAIT' AND t.trx_mysql_thread_id = %s"
    ),
    "mysql": (
        "SELECT COUNT(*) FROM information_schema.innodb_trx t"
        " WHERE t.trx_state = 'LOCK WAIT' AND t.trx_mysql_thread_id = %s"
    ),
    "postgres": (
        "SELECT COUNT(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND pid = %s"
    ),
}
#: innodb_trx is a cache, renewed only when nobody has read it for 0.1 s.
_CACHED = 0.12
_ID = {
    "mariadb": "SELECT CONNECTION_ID()",
    "mysql": "SELECT CONNECTION_ID()",
    "postgres": "SELECT pg_backend_pid()",
}


@contextmanager
def holding(connection: BaseDatabaseWrapper, sql: str, params: Sequence[Any]) -> Iterator[None]:
    """Hold what `sql` locks, in a transaction that is rolled back at the end of the block."""
    with connection.cursor() as cursor:
        cursor.execute("BEGIN IMMEDIATE" if connection.vendor == "sqlite" else "BEGIN")
        try:
            cursor.execute(sql, params)
            cursor.fetchall() if cursor.description else None
            yield
        finally:
            cursor.execute("ROLLBACK")


@contextmanager
def holding_job(connection: BaseDatabaseWrapper, job_id: int) -> Iterator[None]:
    """Hold the lock of one job's row."""
    lock = "" if connection.vendor == "sqlite" else " FOR UPDATE"
    sql = f"SELECT id FROM leasequeue_job WHERE id = %s{lock}"
    with holding(connection, sql, [job_id]):
        yield


def session_id(connection: BaseDatabaseWrapper, kind: str) -> int:
    """Return the server's number for this session."""
    with connection.cursor() as cursor:
        cursor.execute(_ID[kind])
        return int(cursor.fetchone()[0])


def wait_blocked(observer: BaseDatabaseWrapper, kind: str, session: int) -> None:
    """Return once the server says that `session` waits for a lock."""

    def blocked() -> bool:
        time.sleep(_CACHED)
        try:
            with observer.cursor() as cursor:
                cursor.execute(_BLOCKED[kind], [session])
                return bool(cursor.fetchone()[0])
        except OperationalError as error:
            if error.args[0] != 3854:  # MySQL: somebody's statement of this moment holds raw bytes
                raise
            return False

    wait_until(blocked, message=f"session {session} was never seen waiting for a lock")


class Rival(Generic[T]):
    """A function in a thread of its own; `result` joins it and returns or raises what it did."""

    def __init__(self, work: Callable[[], T]) -> None:
        self._work = work
        self._results: list[T] = []
        self._errors: list[BaseException] = []
        self._thread = threading.Thread(target=self._run, name="rival")
        self._thread.start()

    def _run(self) -> None:
        try:
            self._results.append(self._work())
        except BaseException as error:  # noqa: BLE001  (handed to the test)
            self._errors.append(error)

    @property
    def ended(self) -> bool:
        """Tell whether the function has returned or raised."""
        return not self._thread.is_alive()

    def result(self, timeout: float = 30) -> T:
        """Join, then return the function's value or raise its error."""
        self._thread.join(timeout)
        if self._thread.is_alive():
            raise AssertionError("the rival is still running")
        if self._errors:
            error = self._errors[0]
            if isinstance(error, Exception):
                raise error
            # An exit or Ctrl-C of the rival's is a finding, not an order to pytest.
            raise AssertionError(f"the rival ended with {error!r}") from error
        return self._results[0]
