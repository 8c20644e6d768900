"""A test's open transaction, in which attempts commit, roll back and leave things behind."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from typing import Any
from unittest import mock

from django.db import DatabaseError, connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper

__all__ = ["as_in_autocommit", "callbacks_after", "same_connection"]


@contextmanager
def same_connection(alias: str) -> Iterator[None]:
    """Let the thread have its connection object again after the block, whatever was discarded.

    The test runner holds it, to remove its database in the end.
    """
    before = connections[alias]
    try:
        yield
    finally:
        now = connections[alias]
        if now is not before:
            before.connection = None
            before.connect()
            connections[alias] = before
            if now.connection is not None:
                now.connection.close()


@contextmanager
def as_in_autocommit(connection: BaseDatabaseWrapper) -> Iterator[None]:
    """Inside the test's transaction run the block in a savepoint that only a broken one undoes.

    A handler in autocommit mode loses nothing but the statement that failed; here a failed
    statement may have broken the transaction.
    """
    if not connection.in_atomic_block:
        yield
        return
    block = transaction.atomic(using=connection.alias)
    # As the test's own: a durable block may be inside.
    block._from_testcase = True  # type: ignore[attr-defined]  # noqa: SLF001
    with block:
        inside = len(connection.atomic_blocks), len(connection.savepoint_ids)
        with _calling_back_at_once(connection, inside[0]):
            yield
        if _was_left_open(connection, *inside) or _is_broken(connection):
            transaction.set_rollback(True, using=connection.alias)


@contextmanager
def _calling_back_at_once(connection: BaseDatabaseWrapper, blocks: int) -> Iterator[None]:
    """Run an on_commit callback at once where a worker's handler is in no transaction."""
    later = connection.on_commit

    def on_commit(func: Callable[[], Any], robust: bool = False) -> None:
        later(func, robust)
        if len(connection.atomic_blocks) == blocks:
            connection.run_on_commit.pop()
            with suppress(Exception) if robust else nullcontext():
                func()

    with mock.patch.object(connection, "on_commit", on_commit):
        yield


def _was_left_open(connection: BaseDatabaseWrapper, blocks: int, savepoints: int) -> bool:
    """Forget the atomic blocks that a handler has entered and never left; tell of any.

    A worker discards the connection then; this one is the test's, and goes on.
    """
    left = len(connection.atomic_blocks) > blocks
    del connection.atomic_blocks[blocks:]
    del connection.savepoint_ids[savepoints:]
    return left


def _is_broken(connection: BaseDatabaseWrapper) -> bool:
    """Tell whether an error has broken the transaction (PostgreSQL: any error does)."""
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    except DatabaseError:
        return True
    return False


@contextmanager
def callbacks_after(connection: BaseDatabaseWrapper) -> Iterator[list[Exception]]:
    """Run the on_commit callbacks of the block after it, where the test's transaction goes on.

    Yields a list, to which what they raise is added: whoever asked settles first.
    """
    raised: list[Exception] = []
    before = len(connection.run_on_commit)
    yield raised
    while connection.in_atomic_block and len(connection.run_on_commit) > before:
        _sids, callback, robust = connection.run_on_commit.pop(before)  # type: ignore[misc]
        try:
            callback()
        except Exception as error:  # noqa: BLE001
            if not robust:
                raised.append(error)
