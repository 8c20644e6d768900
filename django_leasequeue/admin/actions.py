"""What an operator does to selected jobs: requeue, cancel, pause their queues."""

from __future__ import annotations

from collections.abc import Sequence

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.helpers import ActionForm
from django.db import connections
from django.db.models import QuerySet
from django.forms import BooleanField
from django.http import HttpRequest
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from django_leasequeue.admin.base import OperatorAdmin
from django_leasequeue.admin.bulk import GONE, MOST, Account, Selection, carry_out
from django_leasequeue.admin.display import word
from django_leasequeue.admin.filters import QueueFilter
from django_leasequeue.admin.lookup import queue_names
from django_leasequeue.conf import get_conf
from django_leasequeue.core import operate
from django_leasequeue.core.bulk_plan import SOURCES
from django_leasequeue.core.clock import read_now
from django_leasequeue.models import Job, Queue
from django_leasequeue.statuses import Status

__all__ = ["ReasonForm", "because", "cancel_jobs", "pause_queues", "requeue_jobs"]


#: Queues that one action looks at, an index dive and a question each.
_MOST_QUEUES = 1000


def _now() -> str:
    return read_now(connections[get_conf().DATABASE]).isoformat()


class ReasonForm(ActionForm):
    """The choice of an action, and why; what comes up after the list was shown is not meant."""

    shown_at = forms.CharField(required=False, initial=_now, widget=forms.HiddenInput)
    reason = forms.CharField(label=_("Reason:"), required=False, max_length=500)


@admin.action(permissions=["requeue"], description=_("Requeue selected jobs: dead, cancelled"))
def requeue_jobs(page: OperatorAdmin[Job], request: HttpRequest, matching: QuerySet[Job]) -> None:
    """Make the selected jobs that are dead or cancelled ready again, and say how many were."""
    account = _carry_out(page, request, matching, "requeue", "Requeued")
    done = ngettext("%d job was requeued.", "%d jobs were requeued.", account.changed)
    _tell(page, request, account, done, SOURCES["requeue"])


@admin.action(permissions=["cancel"], description=_("Cancel selected jobs, running ones too"))
def cancel_jobs(page: OperatorAdmin[Job], request: HttpRequest, matching: QuerySet[Job]) -> None:
    """Cancel the selected jobs that are not final yet, or dead, and say how many were."""
    account = _carry_out(page, request, matching, "cancel", "Cancelled")
    done = ngettext("%d job was cancelled.", "%d jobs were cancelled.", account.changed)
    _tell(page, request, account, done, SOURCES["cancel"])


@admin.action(permissions=["pause"], description=_("Pause the queues of selected jobs"))
def pause_queues(page: OperatorAdmin[Job], request: HttpRequest, matching: QuerySet[Job]) -> None:
    """Put the queues on hold that the selected jobs are in, and say which were not yet."""
    by, using = request.user.get_username(), matching.db
    reason = request.POST.get("reason", "").strip()
    names, after = _queues_of(request, matching)
    paused = [name for name in names if operate.pause(name, by=by, reason=reason, using=using)]
    rows = Queue.objects.using(using).filter(name__in=paused)
    page.log(request, rows, because(request, "Paused"))
    if paused:
        page.message_user(request, _("Paused: %s.") % ", ".join(paused), messages.SUCCESS)
    else:
        page.message_user(request, _("No queue was paused: all were."), messages.WARNING)
    if after is not None:
        told = gettext("Queues after %s were not looked at: filter by one of them.")
        page.message_user(request, told % after, messages.WARNING)


def _queues_of(request: HttpRequest, matching: QuerySet[Job]) -> tuple[list[str], str | None]:
    """Return the queues of the selected jobs, and after which there may be others."""
    names = matching.order_by().values_list("queue_name", flat=True)
    if not BooleanField().to_python(request.POST.get("select_across")):
        # Of ticked jobs, which are as many as a page has.
        return sorted(set(names)), None
    if QueueFilter.parameter_name in request.GET:
        return sorted(set(names[:1])), None
    all_names = queue_names(matching.db, _MOST_QUEUES + 1)
    looked = all_names[:_MOST_QUEUES]
    found = [name for name in looked if matching.filter(queue_name=name).exists()]
    return found, looked[-1] if len(all_names) > _MOST_QUEUES else None


def because(request: HttpRequest, message: str) -> str:
    """Return what is left in the log: what was done, and the reason that was given."""
    reason = request.POST.get("reason", "").strip()[:500]
    return f"{message}: {reason}" if reason else message


def _carry_out(
    page: OperatorAdmin[Job],
    request: HttpRequest,
    matching: QuerySet[Job],
    operation: str,
    message: str,
) -> Account:
    def log(changed: Sequence[Job]) -> None:
        page.log(request, changed, because(request, message))

    selection = Selection.of(request, matching, SOURCES[operation])
    by = request.user.get_username()
    return carry_out(selection, operation, page.get_queryset(request), log, by)


def _tell(
    page: OperatorAdmin[Job],
    request: HttpRequest,
    account: Account,
    done: str,
    sources: Sequence[Status],
) -> None:
    """Show how many jobs changed, how many were left out and why, and whether there are more."""
    said = [done % account.changed]
    reasons = [
        f"{count} {_reason(status, sources)}"
        for status, count in sorted(account.left_out.items())
        if count
    ]
    if reasons:
        said.append(gettext("Left out: %s.") % ", ".join(reasons))
    if account.more:
        said.append(gettext("%d is the most at once: repeat it for the others.") % MOST)
    whole = account.changed and len(said) == 1
    page.message_user(request, " ".join(said), messages.SUCCESS if whole else messages.WARNING)


def _reason(status: str, sources: Sequence[Status]) -> str:
    """Return why a job was left out, from its status after the action."""
    if status == GONE:
        return gettext("gone")
    if status in sources:
        return gettext("%s but locked, or with a key that another job has") % word(status)
    return word(status)
