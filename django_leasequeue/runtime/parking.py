"""Parking: jobs that this worker's code does not know, left to workers whose code does.

Decided by control at the claim, before anything is handed over: names and versions are data.
"""

from __future__ import annotations

from collections.abc import Sequence

from django.db.backends.base.base import BaseDatabaseWrapper

from django_leasequeue.core.lease import Claimed
from django_leasequeue.core.park import wake
from django_leasequeue.events import log_event
from django_leasequeue.outcomes import End, Outcome
from django_leasequeue.registry import registry
from django_leasequeue.runtime.charges import Charge, Ended
from django_leasequeue.runtime.clock import ticks

__all__ = ["Parking"]

_EVERY = 2.0
#: A look may cost a twentieth of the time: payloads too new for this worker are passed over.
_COST = 20.0
_MOST = 100


class Parking:
    """Parks what is not known here, if it `parks`, and wakes what others have parked."""

    def __init__(self, queues: Sequence[str], *, parks: bool) -> None:
        self._queues = queues
        self._parks = parks
        self._due = 0.0

    def sift(self, charges: Sequence[Charge]) -> tuple[list[Charge], list[Ended]]:
        """Part what may run here from what is to be parked, which has ended with that."""
        if not self._parks:
            return list(charges), []
        parked = [
            Ended(charge, Outcome(End.PARKED, reason=reason, started=False), 0.0)
            for charge in charges
            if (reason := _unknown(charge.job))
        ]
        left = {ended.charge.job.lease for ended in parked}
        return [charge for charge in charges if charge.job.lease not in left], parked

    def wake_if_due(self, connection: BaseDatabaseWrapper, room: int, *, now: bool = False) -> int:
        """Make parked jobs ready that run here, no more than there is `room` for.

        Others who do not know them might claim and park again what has to wait. Returns how many;
        as many as there was room for means to look again at once.
        """
        began = ticks()
        limit = min(room, _MOST)
        if limit < 1 or (began < self._due and not now):
            return 0
        woken = wake(connection, _known(), self._queues, limit)
        self._due = 0.0 if woken == limit else ticks() + max(_EVERY, _COST * (ticks() - began))
        if woken:
            log_event("jobs_woken", count=woken)
        return woken


def _known() -> dict[str, int]:
    return {kind.name: kind.version for kind in registry}


def _unknown(job: Claimed) -> str:
    """Return why this worker cannot run a job of this type and version, "" if it can."""
    declaration = registry.get(job.job_type)
    if declaration is None:
        return "Parked: the worker does not know this job type"
    if job.payload_version > declaration.version:
        return f"Parked: the worker does not know version {job.payload_version} of the payload"
    return ""
