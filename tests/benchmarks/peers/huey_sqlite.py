"""huey on SQLite, with the defaults of its storage."""

from __future__ import annotations

import os
from functools import cache
from typing import Any

from tests.benchmarks.peers.huey_redis import run


@cache
def queue() -> Any:
    """Return the huey of this adapter."""
    from huey import SqliteHuey

    file = os.environ["DATABASE_URL"].removeprefix("sqlite:///")
    return SqliteHuey("bench", filename=file, store_none=True)


def setup() -> None:
    """Make the tables."""
    queue().flush()


def enqueue(count: int, kind: str) -> None:
    """Enqueue so many."""
    run(queue(), "enqueue", count)


def work() -> None:
    """Run its consumer."""
    run(queue(), "work")


def done() -> int:
    """Count the results."""
    return run(queue(), "done")
