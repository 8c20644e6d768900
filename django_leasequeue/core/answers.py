"""How long a PostgreSQL connection waits for an answer, whatever keeps it back.

Its server ends a statement that takes too long, and the kernel a connection whose peer acknowledges
nothing. A peer that acknowledges what it is sent and never answers, as a hung proxy may do, is
bounded by neither: libpq has no limit for reading.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from time import monotonic
from typing import Any, TypeVar

from django.db.backends.base.base import BaseDatabaseWrapper

__all__ = ["bound_answers"]

T = TypeVar("T")


def bound_answers(connection: BaseDatabaseWrapper, seconds: float) -> None:
    """Let each statement on this connection wait at most `seconds` for its answer.

    Then it raises the driver's OperationalError without a code, as for a connection that was lost:
    of no use is it by then. Connecting has a limit of its own (`connect_timeout`).
    """
    connect: Callable[[dict[str, Any]], Any] = connection.get_new_connection
    lost = connection.Database.OperationalError  # type: ignore[attr-defined]  # the driver's

    def connect_bounded(params: dict[str, Any]) -> Any:
        raw = connect(params)
        wait = raw.wait

        def wait_bounded(steps: Generator[Any, Any, T], *args: Any, **options: Any) -> T:
            answered: T = wait(_bounded(steps, monotonic() + seconds, lost), *args, **options)
            return answered

        raw.wait = wait_bounded
        return raw

    vars(connection)["get_new_connection"] = connect_bounded


def _bounded(
    steps: Generator[Any, Any, T], until: float, lost: type[Exception]
) -> Generator[Any, Any, T]:
    """Go through psycopg's `steps`, which it sends 0 several times a second while nothing comes."""
    try:
        wanted = next(steps)
        while True:
            ready = yield wanted
            if not ready and monotonic() > until:
                raise lost("the server did not answer in time")
            wanted = steps.send(ready)
    except StopIteration as end:
        answered: T = end.value
        return answered
