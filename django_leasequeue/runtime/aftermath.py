"""The aftermath of an attempt: what the project is told once control has written how it ended.

Whoever ran the handler keeps context and exception until then, if anybody listens.
"""

from __future__ import annotations

from typing import NamedTuple

from django_leasequeue.models import Job
from django_leasequeue.outcomes import Outcome
from django_leasequeue.runtime.context import JobContext
from django_leasequeue.signals import job_dead, job_finished, lease_lost
from django_leasequeue.statuses import Status

__all__ = ["Ran", "hears_of_deaths", "hears_of_ends", "tell_end"]


class Ran(NamedTuple):
    """An attempt as its end is told of; the exception is the very one that ended it."""

    context: JobContext
    outcome: Outcome
    error: BaseException | None


def hears_of_ends() -> bool:
    """Tell whether anybody in this process listens to how attempts end."""
    return any(signal.has_listeners(Job) for signal in (job_finished, job_dead, lease_lost))


def hears_of_deaths() -> bool:
    """Tell whether anybody in this process listens to deaths."""
    return bool(job_dead.has_listeners(Job))


def tell_end(ran: Ran, status: Status | None) -> None:
    """Send the signals of an end that is in the database; None: nothing of it could be written.

    A death with a burial ahead is told by the burial.
    """
    if status is None:
        lease_lost.tell(Job, context=ran.context, error=ran.error)
        return
    job_finished.tell(
        Job, context=ran.context, outcome=ran.outcome.end, status=status, error=ran.error
    )
    if status is Status.DEAD and not ran.outcome.bury:
        job_dead.tell(Job, context=ran.context, error=ran.error)
