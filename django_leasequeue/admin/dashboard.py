"""The dashboard of the app's index: what needs a human, the last hour, the queues, the workers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from django.http import HttpRequest
from django.utils.translation import gettext, ngettext

from django_leasequeue.admin.attending import Attendant, read_workers
from django_leasequeue.admin.standing import (
    Figure,
    Standing,
    address,
    counted,
    listing,
    read_standing,
)
from django_leasequeue.conf import get_conf
from django_leasequeue.core.gauges import CAP

__all__ = ["Dashboard", "dashboard"]


@dataclass(frozen=True)
class Dashboard:
    """One look at all of it."""

    standing: Standing
    totals: Sequence[tuple[str, Figure]]
    workers: Sequence[Attendant]
    needs: Sequence[str]
    live_url: str
    queues_url: str
    workers_url: str


def dashboard(request: HttpRequest, site: str) -> Dashboard | None:
    """Look at the queues, and the workers; None for a user who may not see the queues.

    `site` is the name of the admin site whose pages it links to. Raises the database's errors.
    """
    if not request.user.has_perm("leasequeue.view_queue"):
        return None
    alias = get_conf().DATABASE
    standing = read_standing(alias, site)
    sees_workers = request.user.has_perm("leasequeue.view_worker")
    workers_url = address(site, "worker_changelist") if sees_workers else ""
    workers, _more = read_workers(alias, site, standing.now)
    return Dashboard(
        standing=standing,
        totals=list(_totals(standing, workers, site, workers_url)),
        workers=workers if sees_workers else (),
        needs=list(_needs(standing, workers)),
        live_url=address(site, "queue_dashboard"),
        queues_url=address(site, "queue_changelist"),
        workers_url=workers_url,
    )


def _totals(
    standing: Standing, workers: Sequence[Attendant], site: str, workers_url: str
) -> Iterable[tuple[str, Figure]]:
    queues = standing.board.queues
    more = "" if standing.board.complete else "+"
    for title, status, numbers in (
        (gettext("ready"), "ready", [one.ready for one in queues]),
        (gettext("scheduled"), "scheduled", [one.scheduled for one in queues]),
        (gettext("reserved"), "reserved", [one.reserved for one in queues]),
        (gettext("parked"), "parked", [one.parked for one in queues]),
        (gettext("dead"), "dead", [one.dead for one in queues]),
    ):
        text = _sum(numbers, standing.board.cap)
        text += more if not text.endswith("+") else ""
        yield title, Figure(text, listing(site, status))
    present = sum(not worker.late for worker in workers)
    yield gettext("workers"), Figure(str(present), workers_url)


def _sum(numbers: Sequence[int], cap: int) -> str:
    return f"{sum(numbers)}{'+' * any(number >= cap for number in numbers)}"


def _needs(standing: Standing, workers: Sequence[Attendant]) -> Iterable[str]:
    """Say what needs a human, a sentence each."""
    board = standing.board
    seen = any(not worker.late for worker in workers)
    paused = sum(line.pause is not None for line in standing.lines)
    if dead := sum(one.dead for one in board.queues):
        said = ngettext("%s job is dead: look at it.", "%s jobs are dead: look at them.", dead)
        yield said % _sum([one.dead for one in board.queues], board.cap)
    if parked := sum(one.parked for one in board.queues):
        yield ngettext(
            "%s job is parked: no worker here knows its type.",
            "%s jobs are parked: no worker here knows their type.",
            parked,
        ) % _sum([one.parked for one in board.queues], board.cap)
    if paused:
        yield ngettext("%d queue is paused.", "%d queues are paused.", paused) % paused
    if not seen and any(one.ready and not one.paused for one in board.queues):
        yield gettext("Jobs are due, and no worker was seen within a minute.")
    if not seen and board.expired_leases:
        yield gettext("%s leases ran out and were not taken back: is a worker running?") % counted(
            board.expired_leases, CAP
        )
