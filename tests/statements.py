"""Seeing the statements of a connection, BEGIN and COMMIT of the core included."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper


@contextmanager
def count_statements(connection: BaseDatabaseWrapper) -> Iterator[list[str]]:
    """Collect the SQL that goes through this connection's cursors inside the block.

    The list grows as statements are sent; a failing one is in it too.
    """
    statements: list[str] = []

    def note(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        statements.append(sql)
        return execute(sql, params, many, context)

    with connection.execute_wrapper(note):
        yield statements
