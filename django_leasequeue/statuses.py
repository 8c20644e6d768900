"""The statuses of a job and the one table of legal transitions between them."""

from __future__ import annotations

from enum import StrEnum

__all__ = ["FINAL", "TRANSITIONS", "Status", "sources_of"]


class Status(StrEnum):
    """What a job is. "Scheduled" and "retrying" are views of READY with a future available_at."""

    READY = "ready"
    RESERVED = "reserved"
    DONE = "done"
    DEAD = "dead"
    CANCELLED = "cancelled"
    PARKED = "parked"


TRANSITIONS: dict[Status, frozenset[Status]] = {
    Status.READY: frozenset({Status.RESERVED, Status.DEAD, Status.CANCELLED}),
    Status.RESERVED: frozenset(
        {Status.DONE, Status.READY, Status.DEAD, Status.CANCELLED, Status.PARKED}
    ),
    Status.PARKED: frozenset({Status.READY, Status.CANCELLED}),
    Status.DEAD: frozenset({Status.READY, Status.CANCELLED}),
    Status.CANCELLED: frozenset({Status.READY}),
    Status.DONE: frozenset(),
}

#: A job in one of these will not run again by itself, and its live_key is free.
FINAL = frozenset({Status.DONE, Status.DEAD, Status.CANCELLED})


def sources_of(target: Status) -> tuple[Status, ...]:
    """Return the statuses from which `target` may be reached, in the enum's order."""
    return tuple(source for source in Status if target in TRANSITIONS[source])
