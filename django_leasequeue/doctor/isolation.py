"""The isolation level that the project's own transactions have; the queue's have their own."""

from __future__ import annotations

from collections.abc import Iterator

from django_leasequeue.doctor.case import Case
from django_leasequeue.doctor.findings import Finding, Kind

__all__ = ["isolation"]

LEVEL = Kind(
    "leasequeue.W007",
    "isolation",
    "Take isolation_level out of the database's OPTIONS, or set it to read committed.",
)

_TROUBLE = {
    "repeatable read": "all plain reads of a handler's transaction show the state of its first "
    "one, and on MySQL and MariaDB a range that it locks keeps others from inserting into it",
    "serializable": "plain reads lock what they read, or fail at the commit: such attempts fail "
    "and are repeated",
    "read uncommitted": "a handler may see what is never committed",
}


def isolation(case: Case) -> Iterator[Finding]:
    """The project's transactions are not READ COMMITTED."""
    level = case.server.isolation(case.connection)
    if level in _TROUBLE:
        yield LEVEL.found(
            f"The project's transactions are {level.upper()}: {_TROUBLE[level]}. The queue's own "
            "are READ COMMITTED all the same."
        )
