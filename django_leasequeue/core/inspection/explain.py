"""Explaining instead of running: the queue's own functions are called, and nothing happens.

Each statement is explained where it would be sent, with its parameters, in its own transaction.
An explained locking read finds no rows, so what would have followed upon rows is not reached.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper

from django_leasequeue.core.inspection.choice import server_for
from django_leasequeue.core.inspection.plan import Plan

__all__ = ["explained_instead"]

_OURS = re.compile(r"/\* leasequeue:(\w+) \*/ ")


@contextmanager
def explained_instead(connection: BaseDatabaseWrapper) -> Iterator[list[Plan]]:
    """Have the queue's statements on this connection explained, not run; collect their plans."""
    server = server_for(connection)
    plans: list[Plan] = []

    def explain(
        execute: Callable[..., Any], sql: str, params: Any, many: bool, context: Any
    ) -> Any:
        found = _OURS.match(sql)
        if found is None:
            return execute(sql, params, many, context)  # BEGIN and COMMIT
        result = execute(server.explain + sql, params, many, context)
        cursor = context["cursor"]
        columns = [column[0] for column in cursor.description]
        # Read to the end, so that whoever sent the statement finds no row.
        plans.append(server.read_plan(found[1], columns, cursor.fetchall()))
        return result

    with connection.execute_wrapper(explain):
        yield plans
