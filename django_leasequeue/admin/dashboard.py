"""The dashboard of the app's index: what needs a human, the last hour, the queues, the workers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from django.http import HttpRequest
from django.utils.translation import gettext, ngettext

from django_leasequeue.admin.attending import Attendant, attending
from django_leasequeue.admin.display import named
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
    #: It knows of all that could need a human: only then is nothing said to.
    sure: bool
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
    workers, _more = attending(standing.workers, site, standing.now)
    return Dashboard(
        standing=standing,
        totals=list(_totals(standing, site, workers_url)),
        workers=workers if sees_workers else (),
        needs=list(_needs(standing)),
        # All the rest is asked of all queues at once.
        sure=standing.board.complete or standing.takers.all,
        live_url=address(site, "queue_dashboard"),
        queues_url=address(site, "queue_changelist"),
        workers_url=workers_url,
    )


def _totals(standing: Standing, site: str, workers_url: str) -> Iterable[tuple[str, Figure]]:
    board = standing.board
    for title, status, numbers in (
        (gettext("ready"), "ready", [one.ready for one in board.queues]),
        (gettext("scheduled"), "scheduled", [one.scheduled for one in board.queues]),
    ):
        text = _sum(numbers, board.cap)
        text += "+" if not (board.complete or text.endswith("+")) else ""
        yield title, Figure(text, listing(site, status))
    for title, status, number in (
        (gettext("reserved"), "reserved", board.overall.reserved),
        (gettext("parked"), "parked", board.overall.parked),
        (gettext("dead"), "dead", board.overall.dead),
    ):
        yield title, Figure(counted(number, CAP), listing(site, status))
    yield gettext("workers"), Figure(str(standing.takers.seen), workers_url)


def _sum(numbers: Sequence[int], cap: int) -> str:
    return f"{sum(numbers)}{'+' * any(number >= cap for number in numbers)}"


def _needs(standing: Standing) -> Iterable[str]:
    """Say what needs a human, a sentence each."""
    overall = standing.board.overall
    if dead := overall.dead:
        said = ngettext("%s job is dead: look at it.", "%s jobs are dead: look at them.", dead)
        yield said % counted(dead, CAP)
    if parked := overall.parked:
        yield ngettext(
            "%s job is parked: no worker here knows its type.",
            "%s jobs are parked: no worker here knows their type.",
            parked,
        ) % counted(parked, CAP)
    if paused := overall.paused:
        yield ngettext("%d queue is paused.", "%d queues are paused.", paused) % paused
    yield from _lacking_workers(standing)


def _lacking_workers(standing: Standing) -> Iterable[str]:
    expired = standing.board.overall.expired_leases
    untaken = [line.name for line in standing.lines if line.untaken]
    if not standing.takers.seen:
        if untaken:
            yield gettext("Jobs are due, and no worker was seen within a minute.")
        if expired:
            told = gettext("%s leases ran out and were not taken back: is a worker running?")
            yield told % counted(expired, CAP)
    elif untaken:
        yield ngettext(
            "Jobs are due in the queue %s, and no worker that is there takes them.",
            "Jobs are due in the queues %s, and no worker that is there takes them.",
            len(untaken),
        ) % ", ".join(map(named, untaken))
