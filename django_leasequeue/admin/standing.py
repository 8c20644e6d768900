"""What the dashboard and the queues' page show: rows ready for a template, in few statements."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from urllib.parse import urlencode

from django.db import connections
from django.urls import NoReverseMatch, reverse
from django.utils.safestring import SafeString
from django.utils.translation import gettext

from django_leasequeue.admin.ages import age
from django_leasequeue.admin.charts import bars
from django_leasequeue.admin.takers import Takers, read_present
from django_leasequeue.core.board import Board, read_board
from django_leasequeue.core.gauges import QueueGauges
from django_leasequeue.core.recent import (
    BUCKET_CAP,
    Bucket,
    Recent,
    read_finished,
    read_recent,
)
from django_leasequeue.models import Queue, Worker

__all__ = [
    "Figure",
    "Line",
    "Standing",
    "address",
    "counted",
    "listing",
    "read_standing",
    "titles",
]

MOST_QUEUES = 20


@dataclass(frozen=True)
class Figure:
    """A capped count in words, and where the jobs behind it are listed."""

    text: str
    url: str = ""


@dataclass(frozen=True)
class Line:
    """One queue: its figures, its last hour, and who has put it on hold."""

    name: str
    figures: Sequence[Figure]
    oldest: str
    ended: str
    failed: str
    chart: SafeString | str
    pause: Queue | None = None
    #: Jobs are due, and no worker that is there takes them.
    untaken: bool = False


@dataclass(frozen=True)
class Standing:
    """One look at the queues, at `now` of the database."""

    now: datetime
    board: Board
    lines: Sequence[Line]
    workers: Sequence[Worker]
    takers: Takers
    #: The last hour of all queues.
    chart: SafeString
    summary: str
    sampled: str
    #: The queue behind which the next page begins, "" on the last.
    further: str = ""


def address(site: str, view: str, *args: object, **query: str) -> str:
    """Return the address of one of the app's views on a site, "" if the site has not got it."""
    try:
        url = reverse(f"{site}:leasequeue_{view}", args=args)
    except NoReverseMatch:
        return ""
    return f"{url}?{urlencode(query)}" if query else url


def listing(site: str, status: str, **query: str) -> str:
    """Return where the jobs of a status are listed, dead ones by what they died of."""
    exact = {"exact": "1"} if "" in query.values() else {}
    groups = address(site, "deadgroup_changelist", **query, **exact) if status == "dead" else ""
    return groups or address(site, "job_changelist", status=status, **query)


def counted(number: int, cap: int) -> str:
    """Return a capped count as it is shown."""
    return f"{number}+" if number >= cap else str(number)


def read_standing(alias: str, site: str, *, after: str = "") -> Standing:
    """Look at the queues whose names come after `after`; raises the database's errors."""
    connection = connections[alias]
    board = read_board(connection, most=MOST_QUEUES, after=after)
    recent, finished = read_recent(connection, board.now), read_finished(connection, board.now)
    held = Queue.objects.using(alias).filter(paused_at__isnull=False, name__gt=after)
    # A page has room for no more of them.
    pauses = {queue.name: queue for queue in held.order_by("name")[: MOST_QUEUES + 1]}
    gauges, further = _paged(board, pauses)
    workers = read_present(alias, board.now)
    takers = Takers.of(workers, board.now)
    return Standing(
        now=board.now,
        board=board,
        lines=[
            _line(one, board.cap, recent, site, pauses.get(one.queue), takers) for one in gauges
        ],
        workers=workers,
        takers=takers,
        chart=bars(finished, _summary(finished), 60),
        summary=_summary(finished),
        sampled=age((recent.until - recent.since).total_seconds()),
        further=further,
    )


def _paged(board: Board, held: Iterable[str]) -> tuple[list[QueueGauges], str]:
    """Return the queues of a page, those on hold without jobs among them; and its last if not all.

    By name: where the board ends, a queue on hold that comes later waits for the next page.
    """
    known = {one.queue: one for one in board.queues}
    names = sorted({*known, *held})
    if not board.complete and known:
        names = [name for name in names if name <= max(known)]
    shown = names[:MOST_QUEUES]
    further = shown[-1] if shown and (len(names) > len(shown) or not board.complete) else ""
    return [known.get(name) or _empty(name) for name in shown], further


def _empty(name: str) -> QueueGauges:
    """Return the figures of a queue that was put on hold and has no jobs."""
    return QueueGauges(name, 0, 0, 0, 0, 0, 0.0, paused=True)


def _line(
    one: QueueGauges, cap: int, recent: Recent, site: str, pause: Queue | None, takers: Takers
) -> Line:
    counts = {
        "ready": one.ready,
        "scheduled": one.scheduled,
        "reserved": one.reserved,
        "parked": one.parked,
        "dead": one.dead,
    }
    buckets = recent.queues.get(one.queue, [])
    badly = sum(bucket.badly for bucket in buckets)
    total = sum(map(sum, buckets))
    told = gettext("%(total)d attempts, %(failed)d of them failed") % {
        "total": total,
        "failed": badly,
    }
    return Line(
        name=one.queue,
        figures=[_figure(site, one.queue, cap, *item) for item in counts.items()],
        oldest=age(one.oldest_ready) if one.ready else "",
        ended=str(total),
        failed=f"{100 * badly / total:.0f} %" if total else "",
        chart=bars(buckets, told) if total else "",
        pause=pause,
        untaken=bool(one.ready) and pause is None and not takers.take(one.queue),
    )


def _figure(site: str, queue: str, cap: int, status: str, number: int) -> Figure:
    return Figure(counted(number, cap), listing(site, status, queue=queue) if number else "")


def _summary(buckets: Iterable[Bucket]) -> str:
    found = list(buckets)
    done, dead = (_total(bucket[at] for bucket in found) for at in (0, 1))
    return gettext("%(done)s done and %(dead)s dead in the last hour") % {
        "done": done,
        "dead": dead,
    }


def _total(numbers: Iterable[int]) -> str:
    found = list(numbers)
    return f"{sum(found)}{'+' * any(number >= BUCKET_CAP for number in found)}"


def titles() -> list[str]:
    """Return the heads of a line's figures."""
    return [
        gettext("ready"),
        gettext("scheduled"),
        gettext("reserved"),
        gettext("parked"),
        gettext("dead"),
    ]
