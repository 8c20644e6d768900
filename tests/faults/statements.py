"""Breaking the n-th statement, BEGIN and COMMIT included, before or after the server did it."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Literal

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.signals import connection_created

from tests.faults.errors import make_error, severs

When = Literal["before", "after"]


@dataclass
class Fault:
    """Raises an error with `code` at the `at`-th statement (from 1) that `match` accepts.

    "before": the server never got the statement. "after": it did all of it, and only the answer
    is lost. A code that tells of a lost session really ends it. `times` in a row it happens;
    `seen` lists the statements that were counted, `fired` tells how often it struck.
    """

    code: Any
    at: int = 1
    when: When = "before"
    match: Callable[[str], bool] = lambda sql: True
    times: int = 1
    seen: list[str] = field(default_factory=list)
    fired: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def strikes(self, sql: str) -> bool:
        """Count a statement; tell whether it is to be broken."""
        with self._lock:
            if not self.match(sql):
                return False
            self.seen.append(sql)
            hit = self.at <= len(self.seen) < self.at + self.times
            self.fired += hit
            return hit

    def run(self, connection: BaseDatabaseWrapper, sql: str, statement: Callable[[], Any]) -> Any:
        """Run `statement`, broken if it is its turn."""
        if not self.strikes(sql):
            return statement()
        if self.when == "after":
            statement()
        if severs(self.code):
            _sever(connection)
        raise make_error(connection, self.code)


def _sever(connection: BaseDatabaseWrapper) -> None:
    """End the session under Django's feet, as a killed server process does."""
    if connection.connection is not None and connection.vendor != "sqlite":
        # Not the driver's close(): mysqlclient would then raise at Django's own as well.
        wire = socket.socket(fileno=os.dup(connection.connection.fileno()))
        with wire, suppress(OSError):  # it may be severed already
            wire.shutdown(socket.SHUT_RDWR)


@contextmanager
def broken(connection: BaseDatabaseWrapper, fault: Fault) -> Iterator[Fault]:
    """Let `fault` act on one connection inside the block, on Django's own COMMIT as well."""
    with ExitStack() as stack:
        _install(stack, connection, fault)
        yield fault


@contextmanager
def broken_everywhere(fault: Fault) -> Iterator[Fault]:
    """Let `fault` act on every connection that is opened inside the block, in any thread."""
    touched: list[BaseDatabaseWrapper] = []

    def install(*, connection: BaseDatabaseWrapper, **kwargs: Any) -> None:
        if connection not in touched:
            touched.append(connection)
            _install(stack, connection, fault)

    with ExitStack() as stack:
        connection_created.connect(install, weak=False, dispatch_uid="tests.faults")
        stack.callback(connection_created.disconnect, dispatch_uid="tests.faults")
        yield fault


def _install(stack: ExitStack, connection: BaseDatabaseWrapper, fault: Fault) -> None:
    """Put `fault` between a connection and its server until `stack` is closed."""

    def watch(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        return fault.run(connection, sql, lambda: execute(sql, params, many, context))

    kind: Any = type(connection)

    def commit() -> Any:
        return fault.run(connection, "COMMIT", lambda: kind._commit(connection))

    def autocommit(on: bool) -> Any:
        sql = f"SET autocommit = {int(on)}"
        return fault.run(connection, sql, lambda: kind._set_autocommit(connection, on))

    connection.execute_wrappers.append(watch)
    stack.callback(_remove, connection.execute_wrappers, watch)
    replaced: dict[str, Any] = {"_commit": commit}
    if connection.vendor == "mysql":  # elsewhere it is no statement
        replaced["_set_autocommit"] = autocommit
    vars(connection).update(replaced)
    stack.callback(lambda: [vars(connection).pop(name) for name in replaced])


def _remove(wrappers: list[Any], wrapper: Any) -> None:
    if wrapper in wrappers:
        wrappers.remove(wrapper)
