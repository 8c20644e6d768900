"""How an attempt ended, as a value, and what each end spends.

An outcome crosses process borders, so it holds plain data. `transition` is the whole rule of what
a job becomes, without a database: the core writes what it says.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from enum import StrEnum
from operator import attrgetter
from typing import Any, NamedTuple

from django_leasequeue.statuses import Status

__all__ = [
    "GIVE_BACK_LIMIT",
    "SPENDING",
    "Budget",
    "End",
    "ErrorSummary",
    "Outcome",
    "Spending",
    "Transition",
    "transition",
]

#: After this many releases of a handler that had begun, in a row, a release spends an attempt,
#: so that endless deploys end.
GIVE_BACK_LIMIT = 20


class End(StrEnum):
    """The ways an attempt can end; the words stored in JobAttempt.outcome."""

    COMPLETED = "completed"
    SKIPPED = "skipped"
    FAILED = "failed"
    TIMED_OUT = "timed_out"
    REJECTED = "rejected"
    CANCELLED = "cancelled"
    CRASHED = "crashed"
    EXPIRED = "expired"
    SNOOZED = "snoozed"
    RELEASED = "released"
    PARKED = "parked"


class Spending(NamedTuple):
    """What one end costs: is the attempt spent, does it count as a crash, is it on record."""

    attempt: bool
    crash: bool
    recorded: bool


SPENDING: dict[End, Spending] = {
    End.COMPLETED: Spending(attempt=True, crash=False, recorded=True),
    End.SKIPPED: Spending(attempt=True, crash=False, recorded=True),
    End.FAILED: Spending(attempt=True, crash=False, recorded=True),
    End.TIMED_OUT: Spending(attempt=True, crash=False, recorded=True),
    End.REJECTED: Spending(attempt=True, crash=False, recorded=True),
    End.CANCELLED: Spending(attempt=True, crash=False, recorded=True),
    End.CRASHED: Spending(attempt=True, crash=True, recorded=True),
    End.EXPIRED: Spending(attempt=True, crash=True, recorded=True),
    End.SNOOZED: Spending(attempt=False, crash=False, recorded=True),
    End.RELEASED: Spending(attempt=False, crash=False, recorded=True),
    End.PARKED: Spending(attempt=False, crash=False, recorded=False),
}


@dataclass(frozen=True, slots=True)
class ErrorSummary:
    """What is kept of an error: never values, the message only when its author vouches for it.

    `frames` are "file:line function" texts, outermost first; `fingerprint` groups like errors.
    """

    error_class: str
    text: str
    frames: tuple[str, ...] = ()
    fingerprint: str = ""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The end of one attempt.

    `delay` is seconds until the job is available again where it is tried again, which says
    nothing of a release; `result` is JSON
    text; `started` tells whether the handler had begun; `bury` asks for the `failed` hook if this
    end is the job's death; `settled` says that the end is already written, by complete().
    """

    end: End
    result: str | None = field(default=None, repr=False)
    delay: float = 0.0
    error: ErrorSummary | None = None
    reason: str = ""
    started: bool = True
    bury: bool = False
    settled: bool = False

    def __reduce__(self) -> tuple[Any, ...]:
        # On its way from a child: what a frozen dataclass does by itself takes ten times as long.
        return Outcome, _values(self)

    @property
    def recorded(self) -> bool:
        """Tell whether this end leaves an attempt row."""
        return SPENDING[self.end].recorded and (self.started or self.end is not End.RELEASED)

    @property
    def message(self) -> str:
        """The text for the job's last_error."""
        return self.error.text if self.error else self.reason


_values = attrgetter(*(item.name for item in fields(Outcome)))


class Budget(NamedTuple):
    """The counters of a reserved job; `attempts` already includes the running one."""

    attempts: int
    max_attempts: int
    crashes: int
    max_crashes: int
    releases: int


class Transition(NamedTuple):
    """What the job becomes: counters are differences, except `releases`, which is the new value.

    `delay` is seconds until a ready job is available; None keeps when it was, and its turn.
    """

    status: Status
    attempts: int
    crashes: int
    releases: int
    delay: float | None = 0.0


_FINAL_ENDS = {
    End.COMPLETED: Status.DONE,
    End.SKIPPED: Status.DONE,
    End.REJECTED: Status.DEAD,
    End.CANCELLED: Status.CANCELLED,
    End.PARKED: Status.PARKED,
}


def transition(outcome: Outcome, budget: Budget) -> Transition:
    """Return what a job with `budget` becomes when its attempt ends with `outcome`.

    Never gives back below 0 attempts; dead at whichever budget ends first (design, section 5).
    A release before the handler began is free, however often; no release changes the job's turn.
    """
    spending = SPENDING[outcome.end]
    released = outcome.end is End.RELEASED
    counts = released and outcome.started
    spent = spending.attempt or (counts and budget.releases >= GIVE_BACK_LIMIT)
    attempts = 0 if spent else -min(1, budget.attempts)
    crashes = int(spending.crash)
    releases = budget.releases + int(counts) if released and not spent else 0
    status = _FINAL_ENDS.get(outcome.end)
    if status is None:
        used_up = budget.attempts + attempts >= budget.max_attempts
        crashed_out = bool(crashes) and budget.crashes + crashes >= budget.max_crashes
        status = Status.DEAD if spent and (used_up or crashed_out) else Status.READY
    delay = outcome.delay if status is Status.READY else 0.0
    return Transition(status, attempts, crashes, releases, None if released else delay)
