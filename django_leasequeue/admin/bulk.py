"""The jobs that a list's action is for: what was shown and selected, by id and by status."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Self

from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.db.models import Q, QuerySet
from django.forms import BooleanField
from django.http import HttpRequest

from django_leasequeue.admin.paging import capped_count
from django_leasequeue.core.bulk_filter import MOST_IDS
from django_leasequeue.core.bulk_plan import SOURCES
from django_leasequeue.models import Job
from django_leasequeue.statuses import FINAL, Status

__all__ = ["GONE", "MOST", "Selection", "is_across", "meant", "widened"]

#: Jobs of one action: so many ids lie in a run's row.
MOST = MOST_IDS
#: MariaDB makes a table of a list of a thousand, and scans that.
_LOOK = 500
#: Words of the status filter that are views of a status.
_VIEWS = {
    "scheduled": Status.READY,
    "retrying": Status.READY,
    "expired": Status.RESERVED,
}
GONE = "gone"


@dataclass(frozen=True)
class Selection:
    """What an action would change, and what of the selection it would not."""

    #: The ids of the jobs, oldest first.
    ids: Sequence[int]
    #: How many of these there are, by status.
    statuses: Counter[str]
    #: There are more jobs than `ids`.
    more: bool = False

    @classmethod
    def of(cls, matching: QuerySet[Job], sources: Sequence[Status], shown_at: datetime) -> Self:
        """Return the oldest of `matching` that are in `sources`.

        What came up after the list was shown is left out, and so is what died after that: a
        second click does not requeue twice.
        """
        over = Q(finished_at=None) | Q(finished_at__lt=shown_at)
        words = [status.value for status in sources]
        rows = matching.filter(over, status__in=words, created_at__lt=shown_at)
        found = list(rows.order_by("pk").values_list("pk", "status")[: MOST + 1])
        jobs = found[:MOST]
        statuses = Counter(status for _pk, status in jobs)
        return cls([pk for pk, _status in jobs], statuses, more=len(found) > MOST)

    def left_out(
        self, request: HttpRequest, visible: QuerySet[Job], matching: QuerySet[Job]
    ) -> Counter[str]:
        """Return how many others were selected, by status as it is now, or as gone."""
        if is_across(request):
            return Counter() if "status" in request.GET else _by_status(matching, self.statuses)
        ticked = {int(pk) for pk in request.POST.getlist(ACTION_CHECKBOX_NAME)}
        left = Counter[str]()
        for ids in _chunks(sorted(ticked - set(self.ids)), _LOOK):
            statuses = list(visible.filter(pk__in=ids).values_list("status", flat=True))
            left.update(statuses)
            left[GONE] += len(ids) - len(statuses)
        return left


def is_across(request: HttpRequest) -> bool:
    """Tell whether all pages are meant, rather than what is ticked."""
    return bool(BooleanField(required=False).to_python(request.POST.get("select_across")))


def meant(request: HttpRequest, operation: str) -> Sequence[Status]:
    """Return the statuses that the operation may change where the list shows but one.

    A dead letter that is to be cancelled, and is ready again by then, is not cancelled.
    """
    word = request.GET.get("status")
    if word is None:
        return SOURCES[operation]
    return [one for one in SOURCES[operation] if one == _VIEWS.get(word, word)]


def widened(statuses: Sequence[str], sources: Sequence[Status]) -> list[Status]:
    """Return those of `sources` that a selection which had `statuses` means.

    A job that waits may run a moment later, and is meant all the same.
    """
    live = any(status not in FINAL for status in statuses)
    return [one for one in sources if one in statuses or (live and one not in FINAL)]


def _by_status(matching: QuerySet[Job], but: Counter[str]) -> Counter[str]:
    others = [status.value for status in Status if status not in but]
    return Counter({other: capped_count(matching.filter(status=other)) for other in others})


def _chunks(items: Sequence[Any], size: int) -> Iterator[Sequence[Any]]:
    for first in range(0, len(items), size):
        yield items[first : first + size]
