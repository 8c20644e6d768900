"""Reach: whether the database answers with the queue's tables in it; a few bounded questions."""

from __future__ import annotations

from django.db import DatabaseError
from django.db.backends.base.base import BaseDatabaseWrapper

from django_leasequeue.core.dialect import dialect_for, trouble
from django_leasequeue.core.transaction import ask, tagged

__all__ = ["has_migration", "touch_jobs"]


def touch_jobs(connection: BaseDatabaseWrapper) -> None:
    """Read at most one row of the jobs. Raises database errors: no server, no table, no grant."""
    primary = dialect_for(connection).hint("PRIMARY")
    sql = f"SELECT id FROM leasequeue_job{primary} ORDER BY id LIMIT 1"
    ask(connection, tagged("reach", sql))


def has_migration(connection: BaseDatabaseWrapper, name: str) -> bool:
    """Tell whether a migration of the queue is applied; True for who may not read which are."""
    sql = "SELECT 1 FROM django_migrations WHERE app = 'leasequeue' AND name = %s LIMIT 1"
    try:
        return bool(ask(connection, tagged("reach", sql), [name]))
    except DatabaseError as error:
        if trouble(connection, error) is not None:
            raise
        return True
