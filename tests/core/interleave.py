"""Something else happens in the middle of a transaction: at a statement, once."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper


@contextmanager
def at_statement(
    connection: BaseDatabaseWrapper,
    pattern: str,
    action: Callable[[], object],
    *,
    nth: int = 1,
    after: bool = False,
) -> Iterator[list[str]]:
    """Run `action` right before, or `after`, the nth statement that `pattern` is found in.

    What `action` raises, the statement raises. Yields the statement it was run at, once it was.
    """
    met: list[str] = []
    hit: list[str] = []

    def watch(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        if hit or not re.search(pattern, sql):
            return execute(sql, params, many, context)
        met.append(sql)
        if len(met) == nth:
            hit.append(sql)
        if hit and not after:
            action()
        result = execute(sql, params, many, context)
        if hit and after:
            action()
        return result

    with connection.execute_wrapper(watch):
        yield hit
