"""What lies in the tables, by a few index dives: never more rows than are told."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from django.db.backends.base.base import BaseDatabaseWrapper

from django_leasequeue.core.dialect import dialect_for
from django_leasequeue.core.inspection.server import rows

__all__ = ["MOST", "Present", "expired", "present", "statuses", "without_deadline"]

#: Statuses, and rows of a kind, that are looked at.
MOST = 100


class Present(NamedTuple):
    """The workers that were seen lately, and all their children."""

    workers: int
    children: int


def statuses(connection: BaseDatabaseWrapper) -> Iterator[str]:
    """Yield the statuses that jobs have, one index dive each; at most MOST."""
    sql = "SELECT status FROM leasequeue_job {}ORDER BY status LIMIT 1"
    found = rows(connection, sql.format(""))
    for _ in range(MOST):
        if not found:
            return
        status = found[0][0]
        yield status
        found = rows(connection, sql.format("WHERE status > %s "), [status])


def expired(connection: BaseDatabaseWrapper, seconds: float) -> int:
    """Return how many reserved jobs lost their lease more than `seconds` ago; at most MOST."""
    dialect = dialect_for(connection)
    return _count(connection, f"lease_until < {dialect.later}", dialect.span(-seconds))


def without_deadline(connection: BaseDatabaseWrapper) -> int:
    """Return how many reserved jobs have a lease without an end; at most MOST."""
    return _count(connection, "lease_until IS NULL")


def _count(connection: BaseDatabaseWrapper, condition: str, *params: object) -> int:
    sql = (
        "SELECT COUNT(*) FROM (SELECT id FROM leasequeue_job WHERE status = 'reserved' "
        f"AND {condition} LIMIT {MOST}) AS found"
    )
    return int(rows(connection, sql, params)[0][0])


def present(connection: BaseDatabaseWrapper, seconds: float) -> Present:
    """Return the workers that run and were seen within `seconds`."""
    dialect = dialect_for(connection)
    sql = (
        "SELECT COUNT(*), COALESCE(SUM(children), 0) FROM leasequeue_worker "
        f"WHERE stopped_at IS NULL AND seen_at > {dialect.later}"
    )
    workers, children = rows(connection, sql, [dialect.span(-seconds)])[0]
    return Present(int(workers), int(children))
