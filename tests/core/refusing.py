"""A database that refuses to write some rows."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from django.db.backends.base.base import BaseDatabaseWrapper

from tests.core.arrange import run


@contextmanager
def refusing(connection: BaseDatabaseWrapper, condition: str) -> Iterator[None]:
    """Let the database refuse every row for which `condition` holds."""
    if connection.vendor == "sqlite":
        condition = condition.replace("status", "NEW.status").replace("job_type", "NEW.job_type")
        for event in ("UPDATE", "INSERT"):
            run(
                connection,
                f"CREATE TRIGGER refused_{event} BEFORE {event} ON leasequeue_job WHEN {condition} "
                "BEGIN SELECT RAISE(ABORT, 'refused'); END",
            )
        undo = ["DROP TRIGGER refused_UPDATE", "DROP TRIGGER refused_INSERT"]
    else:
        run(
            connection,
            f"ALTER TABLE leasequeue_job ADD CONSTRAINT refused CHECK (NOT ({condition}))",
        )
        undo = ["ALTER TABLE leasequeue_job DROP CONSTRAINT refused"]
    try:
        yield
    finally:
        for statement in undo:
            run(connection, statement)
