"""Asking for one page several times: how many statements it takes, and how long."""

from __future__ import annotations

from statistics import median
from time import perf_counter
from typing import NamedTuple

from django.db.backends.base.base import BaseDatabaseWrapper
from django.test import Client

from tests.statements import count_statements

SECONDS = 1.0
QUERIES = 15


class Measured(NamedTuple):
    """What one page took: the median, and the worst, by which it is judged."""

    page: str
    status: int
    queries: int
    seconds: float
    worst: float

    @property
    def problem(self) -> str:
        """What is wrong with it, "" for nothing."""
        if self.status not in (200, 302):
            return f"status {self.status}"
        if self.queries >= QUERIES:
            return f"{self.queries} queries"
        return f"{self.worst:.2f} s at worst" if self.worst >= SECONDS else ""


def measure(
    client: Client, connection: BaseDatabaseWrapper, page: str, url: str, times: int
) -> Measured:
    """Ask for the page `times` times."""
    took, queries, status = [], 0, 200
    for _ in range(times):
        with count_statements(connection) as statements:
            began = perf_counter()
            status = client.get(url).status_code
            took.append(perf_counter() - began)
        queries = max(queries, len(statements))
    return Measured(page, status, queries, median(took), max(took))


def table(found: list[Measured]) -> str:
    """Return what was measured as Markdown."""
    lines = ["| page | queries | median s | worst s |", "|---|---|---|---|"]
    lines += [
        f"| {one.page} | {one.queries} | {one.seconds:.3f} | {one.worst:.3f} |" for one in found
    ]
    return "\n".join(lines)
