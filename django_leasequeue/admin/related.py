"""What belongs to a job: its effects, and its neighbours by key and by type. Bounded, by index."""

from __future__ import annotations

from django.db.models import Q
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext

from django_leasequeue.admin.display import EMPTY, moment
from django_leasequeue.models import Job, JobEffect

__all__ = ["effects", "same_key", "same_type"]

_MOST_EFFECTS = 100
_NEIGHBOURS = 5

Neighbours = list[tuple[int, str, str]]
_SHOWN = ("pk", "queue_name", "status")


def effects(job: Job) -> str | SafeString:
    """Return a list of the effects that were committed, the oldest first."""
    rows = JobEffect.objects.using(job._state.db).filter(job=job)  # noqa: SLF001 (no other way)
    found = [
        (row.name, gettext("attempt %d") % row.number, moment(row.committed_at))
        for row in rows[:_MOST_EFFECTS]
    ]
    if not found:
        return EMPTY
    items = format_html_join("", "<li>{} ({}, {})</li>", found)
    return format_html("<ul>{}</ul>", items)


def same_key(job: Job) -> Neighbours:
    """Return id, queue and status of jobs with the same key in other queues.

    For a key that lasts until its job is finished: the job that holds it now.
    """
    jobs = Job.objects.using(job._state.db).exclude(pk=job.pk)  # noqa: SLF001
    found: Neighbours = []
    for column, key in (("idempotency_key", job.idempotency_key), ("live_key", job.key_hash)):
        if key:
            found += jobs.filter(Q((column, key))).values_list(*_SHOWN)[:_NEIGHBOURS]
    return found


def same_type(job: Job) -> Neighbours:
    """Return those of the same type and status that came just before and after."""
    jobs = Job.objects.using(job._state.db).filter(  # noqa: SLF001
        status=job.status, job_type=job.job_type
    )
    before = jobs.filter(pk__lt=job.pk).order_by("-pk").values_list(*_SHOWN)[:_NEIGHBOURS]
    after = jobs.filter(pk__gt=job.pk).order_by("pk").values_list(*_SHOWN)[:_NEIGHBOURS]
    return [*reversed(before), *after]
