"""Soundness: whether the queue can be worked with, as the database itself answers, in short time.

On a connection of its own whose waits are bounded by a second or two, so that a probe is quick
however busy or far away the server is.
"""

from __future__ import annotations

from functools import lru_cache

from django.db import Error

from django_leasequeue.core.gauges import read_gauges
from django_leasequeue.core.reach import has_migration, touch_jobs
from django_leasequeue.runtime.connections import open_control

__all__ = ["database_problem"]

#: The connection's waits are a quarter of it.
_BOUND = 4.0


def database_problem(alias: str, *, max_oldest: float | None = None) -> str:
    """Return why jobs cannot be enqueued or claimed there, "" if they can.

    That is: it answers, has the queue's tables, and the newest migration that this code knows.
    With `max_oldest` also that no due job of a queue that runs has waited longer, in seconds.
    """
    connection = open_control(alias, _BOUND)
    try:
        touch_jobs(connection)
        name = _newest_migration()
        if name is not None and not has_migration(connection, name):
            return f"migration leasequeue.{name} is not applied"
        if max_oldest is not None:
            oldest = read_gauges(connection).oldest_ready
            if oldest > max_oldest:
                return f"a due job has waited for {oldest:.0f} s, more than {max_oldest:g} s"
    except Error as error:
        return f"the database cannot be used: {type(error).__name__}"
    finally:
        connection.close()
    return ""


@lru_cache(maxsize=1)
def _newest_migration() -> str | None:
    """Return the last migration that this code has; None in a project that disables them."""
    from django.db.migrations.loader import MigrationLoader

    graph = MigrationLoader(None, ignore_no_migrations=True).graph
    leaves = graph.leaf_nodes("leasequeue")
    return leaves[0][1] if leaves else None
