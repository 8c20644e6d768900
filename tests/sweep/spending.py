"""What each end of an attempt costs, copied from the design and not from the code."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple


class Cost(NamedTuple):
    """The attempts and crashes that one end adds to the job's counters."""

    attempts: int
    crashes: int


#: Ends that leave an attempt row. A release before the start and a parking leave none and are free.
RECORDED = {
    "completed": Cost(1, 0),
    "skipped": Cost(1, 0),
    "failed": Cost(1, 0),
    "timed_out": Cost(1, 0),
    "rejected": Cost(1, 0),
    "cancelled": Cost(1, 0),
    "crashed": Cost(1, 1),
    "expired": Cost(1, 1),
    "snoozed": Cost(0, 0),
    "released": Cost(0, 0),
}
#: A release that follows so many in a row costs an attempt.
RELEASES_IN_A_ROW = 20


def spent(outcomes: Iterable[str]) -> Cost:
    """Return what a job's attempts have cost since it was enqueued or requeued."""
    costs = [RECORDED[outcome] for outcome in outcomes]
    return Cost(sum(cost.attempts for cost in costs), sum(cost.crashes for cost in costs))
