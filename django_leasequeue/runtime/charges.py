"""Charges: the attempts in a worker's care, and how those end that cannot report themselves."""

from __future__ import annotations

import signal
from dataclasses import dataclass
from typing import NamedTuple

from django_leasequeue.conf import get_conf
from django_leasequeue.core.lease import Claimed
from django_leasequeue.events import log_event
from django_leasequeue.outcomes import End, ErrorSummary, Outcome
from django_leasequeue.registry import registry
from django_leasequeue.runtime.aftermath import hears_of_deaths
from django_leasequeue.runtime.backoff import pure_delay_after
from django_leasequeue.runtime.clock import ticks
from django_leasequeue.runtime.holds import Hold
from django_leasequeue.runtime.messages import Assignment, Cause
from django_leasequeue.runtime.slots import UNSTARTED

__all__ = ["Charge", "Ended", "died", "killed", "limit_of"]


@dataclass(slots=True, eq=False)
class Charge:
    """An attempt in this worker's care: what control knows of it. Times are ticks."""

    assignment: Assignment
    hold: Hold
    given_at: float
    start_by: float = float("inf")
    started_at: float | None = None
    cause: Cause | None = None
    told_at: float = 0.0
    ended_at: float = 0.0

    @property
    def job(self) -> Claimed:
        """The job."""
        return self.assignment.job

    @property
    def burial(self) -> bool:
        """Tell whether it is the `failed` hook of a dead job that runs."""
        return self.assignment.last is not None

    def start(self) -> None:
        """Note, and log, that its handler begins now."""
        self.started_at = ticks()
        if not self.burial:
            log_event(
                "job_claimed",
                worker=self.job.leased_by,
                job_id=self.job.job_id,
                job_type=self.job.job_type,
                queue=self.job.queue,
                attempt=self.job.attempt,
            )

    def overdue(self, now: float) -> bool:
        """Tell whether its handler has run for its time limit."""
        limit = self.assignment.limit
        return None not in (limit, self.started_at) and now >= self.started_at + limit  # type: ignore[operator]  # both are numbers then


class Ended(NamedTuple):
    """A charge that has ended, how, and after how many seconds of its handler."""

    charge: Charge
    outcome: Outcome
    seconds: float


def limit_of(job: Claimed) -> float | None:
    """Return a job's time limit in seconds: the row's, its type's, or the setting's."""
    if job.timeout is not None:
        return job.timeout
    declaration = registry.get(job.job_type)
    if declaration is not None and declaration.timeout is not None:
        return declaration.timeout
    return get_conf().TIMEOUT


def killed(charge: Charge) -> Outcome:
    """Return how an attempt ended whose process this worker killed.

    Attempts that shared the process with the one that was meant are given back.
    """
    if charge.started_at is None:
        return UNSTARTED
    if charge.hold.completed:
        return Outcome(End.COMPLETED, settled=True)
    if charge.cause is Cause.TIMEOUT:
        text = f"JobTimeout: {charge.cause.value}, and its process was killed"
        return _without_child(charge, End.TIMED_OUT, ErrorSummary("JobTimeout", text))
    if charge.cause is Cause.CANCELLED:
        return Outcome(End.CANCELLED)
    return Outcome(End.RELEASED, reason="Released: its process was killed")


def died(charge: Charge, exit_code: int | None) -> Outcome:
    """Return how an attempt ended whose process died by itself."""
    if charge.started_at is None:
        return UNSTARTED
    if charge.hold.completed:
        return Outcome(End.COMPLETED, settled=True)
    text = f"JobCrashed: the process that ran the job {_way_of(exit_code)}"
    return _without_child(charge, End.CRASHED, ErrorSummary("JobCrashed", text))


def _way_of(exit_code: int | None) -> str:
    if exit_code is None:
        return "is gone"
    if exit_code >= 0:
        return f"exited with code {exit_code}"
    try:
        return f"was ended by {signal.Signals(-exit_code).name}"
    except ValueError:
        return f"was ended by signal {-exit_code}"


def _without_child(charge: Charge, end: End, error: ErrorSummary) -> Outcome:
    declaration = registry.get(charge.job.job_type)
    return Outcome(
        end,
        delay=pure_delay_after(declaration, charge.job.attempt),
        error=error,
        bury=hears_of_deaths() or (declaration is not None and declaration.failed is not None),
    )
