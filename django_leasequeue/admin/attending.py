"""The workers as an operator sees them: who is there, what each runs and for how long."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from django.utils.translation import gettext

from django_leasequeue.admin.ages import age
from django_leasequeue.admin.standing import address
from django_leasequeue.models import Worker

__all__ = ["Attendant", "Running", "read_workers"]

_MOST = 100
_MOST_JOBS = 20
_DAY = timedelta(days=1)
#: A worker that runs was seen within seconds.
_LATE_SECONDS = 60.0


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


def read_workers(alias: str, site: str, now: datetime) -> tuple[list[Attendant], bool]:
    """Return the workers of the last day that have not stopped, and whether there are more.

    `now` is the database's time. One statement; raises the database's errors.
    """
    present = Worker.objects.using(alias).filter(stopped_at=None, seen_at__gt=now - _DAY)
    found = list(present.order_by("-seen_at", "name")[: _MOST + 1])
    shown = sorted(found[:_MOST], key=lambda row: row.name)
    return [_attendant(row, site, now) for row in shown], len(found) > _MOST


def _attendant(row: Worker, site: str, now: datetime) -> Attendant:
    seen = _since(row.seen_at, now)
    late = seen >= _LATE_SECONDS
    jobs = list(_running(row.current_jobs, site, now))
    return Attendant(
        row=row,
        queues=", ".join(map(str, row.queues)) if isinstance(row.queues, list) else "",
        jobs=jobs[:_MOST_JOBS],
        more=max(0, len(jobs) - _MOST_JOBS),
        running_for=age(_since(row.started_at, now)),
        seen=age(seen),
        state=_state(row, late=late),
        late=late,
        drain_url="" if row.drain_requested_at else address(site, "worker_drain", row.pk),
    )


def _state(row: Worker, *, late: bool) -> str:
    if late:
        return gettext("not seen")
    return gettext("draining") if row.drain_requested_at else gettext("running")


def _since(moment: datetime, now: datetime) -> float:
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return (now - moment).total_seconds()


def _running(current: Any, site: str, now: datetime) -> Iterator[Running]:
    """Yield what a worker runs; plain SQL can have put in any JSON."""
    for one in current if isinstance(current, list) else ():
        try:
            job_id, kind = int(one["id"]), str(one["type"])
            held = age(_since(datetime.fromisoformat(one["since"]), now))
        except (KeyError, OverflowError, TypeError, ValueError):
            continue
        yield Running(job_id, kind, held, address(site, "job_change", job_id))
