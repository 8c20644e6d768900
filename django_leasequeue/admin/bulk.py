"""An action on many jobs: through the core in chunks, and an account of what really changed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.db.models import Q, QuerySet
from django.forms import BooleanField
from django.http import HttpRequest

from django_leasequeue.admin.paging import capped_count
from django_leasequeue.admin.wanted import moment_of
from django_leasequeue.core.bulk import go_on, start
from django_leasequeue.core.bulk_chunk import Chunk
from django_leasequeue.core.bulk_filter import MOST_IDS, JobFilter
from django_leasequeue.core.bulk_plan import SOURCES, Options
from django_leasequeue.models import Job
from django_leasequeue.statuses import Status

__all__ = ["MOST", "Account", "Selection", "carry_out"]

#: Jobs of one action, so that it ends before a web server loses patience.
MOST = MOST_IDS
#: MariaDB makes a table of a list of a thousand, and scans that.
_LOOK = 500
_NAMING = ("id", "job_type")

GONE = "gone"


@dataclass(frozen=True)
class Selection:
    """The jobs that an action is for, read once: what comes up later is not among them."""

    #: Id and type of the jobs in a status that the action changes, oldest first.
    jobs: Sequence[tuple[int, str]]
    #: Ticked, but not among `jobs`: another status by now, or gone.
    others: Sequence[int] = ()
    #: Of all that match a filter, those in another status, by status.
    elsewhere: Counter[str] = field(default_factory=Counter)
    #: There are more jobs than `jobs`.
    more: bool = False

    @classmethod
    def of(cls, request: HttpRequest, matching: QuerySet[Job], sources: Sequence[Status]) -> Self:
        """Return what the request selects of `matching`: ticked boxes, or all pages of it."""
        rows = matching.filter(status__in=[status.value for status in sources])
        if shown_at := moment_of(request.POST.get("shown_at", "")):
            # Nor is what died after the list was shown: a second click does not requeue twice.
            over = Q(finished_at=None) | Q(finished_at__lt=shown_at)
            rows = rows.filter(over, created_at__lt=shown_at)
        found = list(rows.order_by("pk").values_list("pk", "job_type")[: MOST + 1])
        jobs = found[:MOST]
        if BooleanField().to_python(request.POST.get("select_across")):
            return cls(jobs, elsewhere=_by_status(matching, sources), more=len(found) > MOST)
        ticked = {int(pk) for pk in request.POST.getlist(ACTION_CHECKBOX_NAME)}
        return cls(jobs, others=sorted(ticked - {pk for pk, _type in jobs}))


@dataclass
class Account:
    """What became of a selection."""

    changed: int = 0
    #: By status as it is now, or "gone".
    left_out: Counter[str] = field(default_factory=Counter)
    more: bool = False


def carry_out(
    selection: Selection,
    operation: str,
    visible: QuerySet[Job],
    log: Callable[[Sequence[Job]], None],
    by: str,
) -> Account:
    """Requeue or cancel the selection in one bulk run and return what really changed.

    `log` is called with the changed jobs after each chunk. `visible` is what the user may see:
    the jobs that were left out are looked up there. A run that a web server cut short is carried
    on at the command line.
    """
    account = Account(left_out=Counter(selection.elsewhere), more=selection.more)
    types = dict(selection.jobs)

    def told(chunk: Chunk) -> None:
        log([Job.from_db(visible.db, _NAMING, (pk, types.pop(pk))) for pk in chunk.changed])
        account.changed += len(chunk.changed)

    if types:
        wanted = JobFilter(ids=types, statuses=SOURCES[operation])
        run = start(operation, wanted, Options(), by=by, using=visible.db)
        go_on(run.pk, told=told, using=visible.db)
    left = [*selection.others, *types]
    for ids in _chunks(left, _LOOK):
        statuses = list(visible.filter(pk__in=ids).values_list("status", flat=True))
        account.left_out.update(statuses)
        account.left_out[GONE] += len(ids) - len(statuses)
    return account


def _by_status(matching: QuerySet[Job], but: Sequence[Status]) -> Counter[str]:
    others = [status.value for status in Status if status not in but]
    return Counter({other: capped_count(matching.filter(status=other)) for other in others})


def _chunks(items: Sequence[Any], size: int) -> Iterator[Sequence[Any]]:
    for first in range(0, len(items), size):
        yield items[first : first + size]
