"""The bulk run that changed a job last: which, since when, by whom and why.

A run changes thousands of jobs, and has one entry in the log; each job knows its last run.
"""

from __future__ import annotations

from typing import NamedTuple

from django.contrib.admin import AdminSite
from django.contrib.admin.models import LogEntry
from django.contrib.admin.options import get_content_type_for_model
from django.urls import reverse
from django.utils.translation import gettext

from django_leasequeue.admin.display import EMPTY, moment
from django_leasequeue.models import BulkRun, Job

__all__ = ["RunOfJob", "run_of"]


class RunOfJob(NamedTuple):
    """A run as the pages of a job show it; without a link where the site has no pages of runs."""

    name: str
    when: str
    by: str
    why: str
    url: str


def run_of(job: Job, site: AdminSite) -> RunOfJob | None:
    """Return the run, None where none changed the job; one that was pruned has its number alone.

    Two queries.
    """
    if (number := job.bulk_run) is None:
        return None
    using = job._state.db  # noqa: SLF001 (no other way)
    run = BulkRun.objects.using(using).defer("filter").filter(pk=number).first()
    if run is None:
        gone = gettext("bulk run #%d, which was pruned") % number
        return RunOfJob(gone, EMPTY, EMPTY, "", "")
    entries = LogEntry.objects.filter(
        content_type=get_content_type_for_model(run), object_id=str(run.pk)
    )
    first = entries.order_by("pk").first()
    url = ""
    if site.is_registered(BulkRun):
        url = reverse("admin:leasequeue_bulkrun_change", args=[run.pk], current_app=site.name)
    why = first.get_change_message() if first else ""
    return RunOfJob(str(run), moment(run.started_at), run.by or EMPTY, why, url)
