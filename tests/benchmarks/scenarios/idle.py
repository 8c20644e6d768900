"""Statements a second of a worker with nothing to do, by the server's own count."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from django.db import connection

from tests.benchmarks.rounds import Bench, Bound, Scenario
from tests.benchmarks.running import running_worker

_WATCH = 10.0


@dataclass
class Statements:
    """A worker that is watched right after a job, and again after the silence."""

    bench: Bench

    def __call__(self) -> dict[str, float]:
        """Return statements a second, BEGIN and COMMIT included."""
        with counting(), running_worker(self.bench):
            return {
                "right after work": self._watch(),
                "after a minute": self._watch(self.bench.silence),
            }

    def _watch(self, pause: float = 0.0) -> float:
        time.sleep(pause)
        seconds = min(_WATCH, max(0.5, self.bench.silence))
        before, began = count(), time.monotonic()
        time.sleep(seconds)
        after = count()
        return (after - before) / (time.monotonic() - began)


@contextmanager
def counting() -> Iterator[None]:
    """Have PostgreSQL count what sessions run that begin in the block; the others always count."""
    if connection.vendor != "postgresql":
        yield
        return
    name = connection.ops.quote_name(connection.settings_dict["NAME"])
    with connection.cursor() as cursor:
        cursor.execute("CREATE EXTENSION IF NOT EXISTS pg_stat_statements")
        cursor.execute(f"ALTER DATABASE {name} SET pg_stat_statements.track = 'top'")
    try:
        yield
    finally:
        with connection.cursor() as cursor:
            cursor.execute(f"ALTER DATABASE {name} RESET pg_stat_statements.track")


def count() -> int:
    """Return how many statements the server has run for clients, but for those of this session."""
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute("SELECT COALESCE(SUM(calls), 0) FROM pg_stat_statements")
            return int(cursor.fetchone()[0])
        cursor.execute("SHOW GLOBAL STATUS LIKE 'Questions'")
        everything = int(cursor.fetchone()[1])
        cursor.execute("SHOW SESSION STATUS LIKE 'Questions'")
        # The second of this session's two questions came after the first sum.
        return everything - (int(cursor.fetchone()[1]) - 1)


SCENARIO = Scenario(
    name="idle",
    title="Statements of an idle worker",
    unit="statements/s",
    contestants=lambda bench: {"one child": Statements(bench)},
    bounds=(Bound("one child, right after work", 5), Bound("one child, after a minute", 3)),
    databases=("mariadb", "mysql", "postgres"),
    rounds=1,
)
