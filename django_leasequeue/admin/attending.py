"""The workers as an operator sees them: who is there, what each runs and for how long."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.utils.translation import gettext

from django_leasequeue.admin.ages import age
from django_leasequeue.admin.standing import address
from django_leasequeue.admin.takers import is_late, seconds_since
from django_leasequeue.models import Worker

__all__ = ["Attendant", "Running", "attending"]

_MOST = 100
_MOST_JOBS = 20


@dataclass(frozen=True)
class Running:
    """A job that a worker holds, and for how long it has."""

    id: int
    type: str
    held: str
    url: str


@dataclass(frozen=True)
class Attendant:
    """One worker: its row, and what is worth saying of it."""

    row: Worker
    queues: str
    jobs: Sequence[Running]
    #: Jobs that are not shown.
    more: int
    running_for: str
    seen: str
    state: str
    #: It was not seen for so long that it may be gone.
    late: bool
    drain_url: str
    #: Where it is said who drains it, and why; "" for one that nobody does.
    past_url: str


def attending(workers: Sequence[Worker], site: str, now: datetime) -> tuple[list[Attendant], bool]:
    """Return the first hundred of the workers, by name, and whether there are more."""
    shown = sorted(workers[:_MOST], key=lambda row: row.name)
    return [_attendant(row, site, now) for row in shown], len(workers) > _MOST


def _attendant(row: Worker, site: str, now: datetime) -> Attendant:
    late = is_late(row, now)
    jobs = list(_running(row.current_jobs, site, now))
    return Attendant(
        row=row,
        queues=", ".join(map(str, row.queues)) if isinstance(row.queues, list) else "",
        jobs=jobs[:_MOST_JOBS],
        more=max(0, len(jobs) - _MOST_JOBS),
        running_for=age(seconds_since(row.started_at, now)),
        seen=age(seconds_since(row.seen_at, now)),
        state=_state(row, late=late),
        late=late,
        drain_url="" if row.drain_requested_at else address(site, "worker_drain", row.pk),
        past_url=address(site, "worker_history", row.pk) if row.drain_requested_at else "",
    )


def _state(row: Worker, *, late: bool) -> str:
    if late:
        return gettext("not seen")
    return gettext("draining") if row.drain_requested_at else gettext("running")


def _running(current: Any, site: str, now: datetime) -> Iterator[Running]:
    """Yield what a worker runs; plain SQL can have put in any JSON."""
    for one in current if isinstance(current, list) else ():
        try:
            job_id, kind = int(one["id"]), str(one["type"])
            held = age(seconds_since(datetime.fromisoformat(one["since"]), now))
        except (KeyError, OverflowError, TypeError, ValueError):
            continue
        yield Running(job_id, kind, held, address(site, "job_change", job_id))
