"""How the server keeps its house: dead row versions, and what survives its crash."""

from __future__ import annotations

from collections.abc import Iterator

from django_leasequeue.doctor.case import Case
from django_leasequeue.doctor.findings import Finding, Kind

__all__ = ["dead_rows", "durability", "vacuum"]

VACUUM = Kind(
    "leasequeue.W020",
    "upkeep",
    "Switch autovacuum on again; a queue's table needs it more than any other.",
)
DEAD = Kind(
    "leasequeue.W021",
    "upkeep",
    "Run VACUUM ANALYZE leasequeue_job, look for old transactions (W014), and lower the table's "
    "autovacuum_vacuum_scale_factor.",
)
DURABILITY = Kind(
    "leasequeue.I006",
    "upkeep",
    "Leave them at their defaults where jobs must survive a crash of the server or its host.",
)
#: Dead row versions worth a word: so many, and so many times the live rows.
_MANY, _TIMES = 100_000, 5


def vacuum(case: Case) -> Iterator[Finding]:
    """Autovacuum is off."""
    if where := case.server.vacuum_off(case.connection, case.variables, case.tables):
        yield VACUUM.found(f"Autovacuum is off for {', '.join(where)}.")


def dead_rows(case: Case) -> Iterator[Finding]:
    """The table of jobs is mostly dead row versions."""
    counts = case.server.dead_rows(case.connection, "leasequeue_job")
    if counts is not None and counts[0] > max(_MANY, _TIMES * counts[1]):
        yield DEAD.found(
            f"leasequeue_job has about {counts[0]} dead row versions and {counts[1]} live rows."
        )


def durability(case: Case) -> Iterator[Finding]:
    """A server that crashes may lose what it has committed."""
    if found := case.server.weak_durability(case.variables):
        named = ", ".join(f"{name} = {value}" for name, value in found.items())
        yield DURABILITY.found(f"A crash of the server may lose committed jobs: {named}.")
