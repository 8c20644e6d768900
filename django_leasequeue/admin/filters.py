"""The job list's filters: each one's choices cost an index dive or nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Any

from django.contrib import messages
from django.contrib.admin import ModelAdmin, SimpleListFilter
from django.db import connections
from django.db.models import Q, QuerySet, Value
from django.db.models.functions import Concat
from django.http import HttpRequest
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from django_leasequeue.admin.display import named
from django_leasequeue.codec import clean_text
from django_leasequeue.conf import get_conf
from django_leasequeue.core.crowds import newest_begin
from django_leasequeue.core.dives import queue_names, ready_priorities
from django_leasequeue.models import Job
from django_leasequeue.querysets import JobQuerySet
from django_leasequeue.registry import registry
from django_leasequeue.statuses import Status

if TYPE_CHECKING:
    from django.utils.functional import _StrOrPromise

__all__ = ["JobTypeFilter", "QueueFilter", "StatusFilter"]

_MOST_QUEUES = 20
#: Ranges of one index in one statement.
_MOST_LANES = 100
#: Jobs of a type that are looked through for those of a queue.
_WINDOW = 50_000

_STATES: dict[str, tuple[_StrOrPromise, Callable[[JobQuerySet], JobQuerySet]]] = {
    "ready": (_("ready, due now"), JobQuerySet.due),
    "scheduled": (_("scheduled"), JobQuerySet.scheduled),
    "retrying": (_("retrying"), JobQuerySet.retrying),
    "reserved": (_("reserved"), JobQuerySet.reserved),
    "expired": (_("reserved, lease expired"), JobQuerySet.expired),
    "parked": (_("parked"), lambda jobs: jobs.filter(status=Status.PARKED)),
    "done": (_("done"), lambda jobs: jobs.filter(status=Status.DONE)),
    "dead": (_("dead"), JobQuerySet.dead),
    "cancelled": (_("cancelled"), lambda jobs: jobs.filter(status=Status.CANCELLED)),
}
#: The statuses of those that are no status themselves.
_STATUSES = {"scheduled": "ready", "retrying": "ready", "expired": "reserved"}
#: Ready jobs that are not due.
_LATER = frozenset({"scheduled", "retrying"})


class StatusFilter(SimpleListFilter):
    """By status, as the list words it; times are compared with the database's clock."""

    title = _("status")
    parameter_name = "status"

    def lookups(
        self, request: HttpRequest, model_admin: ModelAdmin[Any]
    ) -> list[tuple[str, _StrOrPromise]]:
        return [(value, label) for value, (label, _view) in _STATES.items()]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Job]) -> QuerySet[Job]:
        value = self.value()
        if value is None:
            return queryset
        if value not in _STATES or not isinstance(queryset, JobQuerySet):
            return queryset.none()
        if value in _LATER:
            queue = request.GET.get(QueueFilter.parameter_name)
            queryset = _in_lanes(queryset, None if queue is None else clean_text(queue))
        return _STATES[value][1](queryset)


def _in_lanes(jobs: JobQuerySet, queue: str | None) -> JobQuerySet:
    """Return the same ready jobs lane by lane: only within one are they in order of their times.

    Where there are too many lanes for one statement, all ready jobs are looked through.
    """
    connection = connections[jobs.db]
    names, all_names = ([queue], True) if queue else queue_names(connection, "", _MOST_LANES)
    levels, all_levels = ready_priorities(connection, names)
    if not (all_names and all_levels) or sum(map(len, levels.values())) > _MOST_LANES:
        return jobs
    lanes = [Q(queue_name=name, priority__in=sorted(levels[name])) for name in names]
    return jobs.filter(reduce(or_, lanes, Q(pk__in=())))


class _NameFilter(SimpleListFilter):
    """By an exact name; a name that is not among the choices, but in the URL, becomes one."""

    def names(self) -> Iterable[str]:
        """Return the names to choose from."""
        raise NotImplementedError

    def name(self) -> str | None:
        """Return the name in the URL, as far as a database can hold it."""
        value = self.value()
        return None if value is None else clean_text(value)

    def lookups(
        self, request: HttpRequest, model_admin: ModelAdmin[Any]
    ) -> list[tuple[str, _StrOrPromise]]:
        name = self.name()
        names = {*self.names(), *([] if name is None else [name])}
        return [(one, named(one)) for one in sorted(names)]


class QueueFilter(_NameFilter):
    """By queue; the first twenty are choices, the list's cells link to any other."""

    title = _("queue")
    parameter_name = "queue"

    def names(self) -> Iterable[str]:
        return queue_names(connections[get_conf().DATABASE], "", _MOST_QUEUES)[0]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Job]) -> QuerySet[Job]:
        name = self.name()
        # With a type it is for the other filter to say how.
        if name is None or JobTypeFilter.parameter_name in request.GET:
            return queryset
        return queryset.filter(queue_name=name)


class JobTypeFilter(_NameFilter):
    """By job type; the project's own are choices, the list's cells link to any other."""

    title = _("job type")
    parameter_name = "type"

    def names(self) -> Iterable[str]:
        return (job_type.name for job_type in registry)

    def queryset(self, request: HttpRequest, queryset: QuerySet[Job]) -> QuerySet[Job]:
        name = self.name()
        if name is None:
            return queryset
        # The index on the type begins with the status: name them all, and it serves.
        statuses = _statuses_of(request)
        of_type = queryset.filter(job_type=name, status__in=statuses)
        queue = request.GET.get(QueueFilter.parameter_name)
        return of_type if queue is None else _in_queue(request, of_type, clean_text(queue), name)


def _in_queue(
    request: HttpRequest, of_type: QuerySet[Job], queue: str, job_type: str
) -> QuerySet[Job]:
    """Return the jobs of a type that are in a queue, and say so where not all are looked at."""
    statuses = _statuses_of(request)
    using = connections[of_type.db]
    begins = newest_begin(using, queue, job_type, statuses, _WINDOW)
    if not begins:
        return of_type.filter(queue_name=queue)
    if request.method == "GET":
        told = gettext("Of this type only the newest %d jobs of each status were looked through.")
        messages.info(request, told % _WINDOW)
    ranges = [
        Q(status=status, pk__gte=begins[status]) if status in begins else Q(status=status)
        for status in statuses
    ]
    # As an expression: MariaDB would go through the queue, which has too many jobs as well.
    in_queue = of_type.alias(in_queue=Concat("queue_name", Value(""))).filter(in_queue=queue)
    return in_queue.filter(reduce(or_, ranges))


def _statuses_of(request: HttpRequest) -> list[str]:
    """Return the statuses that the list can show, by its filter."""
    word = request.GET.get(StatusFilter.parameter_name)
    status = _STATUSES.get(word or "", word)
    return [one.value for one in Status if word is None or one.value == status]
