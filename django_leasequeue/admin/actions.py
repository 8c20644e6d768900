"""What an operator does to selected jobs: requeue, cancel, pause their queues."""

from __future__ import annotations

from collections.abc import Sequence

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.helpers import ActionForm
from django.db import connections
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from django_leasequeue.admin.asking import Question, answer_of, ask
from django_leasequeue.admin.base import OperatorAdmin
from django_leasequeue.admin.bulk import is_across
from django_leasequeue.admin.display import named
from django_leasequeue.admin.filters import QueueFilter
from django_leasequeue.admin.listed import run_of_list
from django_leasequeue.admin.lookup import queue_names
from django_leasequeue.admin.pausing import pause_queue
from django_leasequeue.admin.reason import ReasonForm
from django_leasequeue.conf import get_conf
from django_leasequeue.core.clock import read_now
from django_leasequeue.exceptions import EnqueueError
from django_leasequeue.models import Job

__all__ = ["ShownForm", "cancel_jobs", "pause_queues", "requeue_jobs"]


#: Queues that one action looks at, an index dive and a question each; a form has room for them.
_MOST_QUEUES = 500


def _now() -> str:
    return read_now(connections[get_conf().DATABASE]).isoformat()


class ShownForm(ActionForm):
    """The choice of an action; what comes up after the list was shown is not meant."""

    # The list shows a hidden field's label too.
    shown_at = forms.CharField(label="", required=False, initial=_now, widget=forms.HiddenInput)


@admin.action(permissions=["requeue"], description=_("Requeue selected jobs: dead, cancelled"))
def requeue_jobs(
    page: OperatorAdmin[Job], request: HttpRequest, matching: QuerySet[Job]
) -> HttpResponse | None:
    """Make the selected jobs that are dead or cancelled ready again, after a question."""
    return run_of_list(page, request, matching, "requeue")


@admin.action(permissions=["cancel"], description=_("Cancel selected jobs, running ones too"))
def cancel_jobs(
    page: OperatorAdmin[Job], request: HttpRequest, matching: QuerySet[Job]
) -> HttpResponse | None:
    """Cancel the selected jobs that are not final yet, or dead, after a question."""
    return run_of_list(page, request, matching, "cancel")


@admin.action(permissions=["pause"], description=_("Pause the queues of selected jobs"))
def pause_queues(
    page: OperatorAdmin[Job], request: HttpRequest, matching: QuerySet[Job]
) -> HttpResponse:
    """Put on hold the queues that the selected jobs are in, after a question that names them."""
    form = ReasonForm(answer_of(request))
    names, after = request.POST.getlist("queue")[:_MOST_QUEUES], None
    if form.is_valid():
        _pause(page, request, names, form.cleaned_data["reason"])
        return HttpResponseRedirect(request.get_full_path())
    if not form.is_bound:
        names, after = _queues_of(request, matching)
    said = [gettext("Within a second no worker claims from these queues; running jobs finish.")]
    if after is not None:
        said.append(gettext("Queues after %s were not looked at: filter by one of them.") % after)
    verb = _("Pause") if names else ""
    carried = [("queue", name) for name in names]
    question = Question(_("Pause queues"), verb, said, [named(name) for name in names], carried)
    return ask(page, request, question, form)


def _pause(
    page: OperatorAdmin[Job], request: HttpRequest, names: Sequence[str], reason: str
) -> None:
    """Pause one after the other, each with its entry, and say which."""
    paused = []
    for name in names:
        try:
            if pause_queue(page, request, name, reason):
                paused.append(name)
        except EnqueueError:
            told = _("No queue can have that name: %s.")
            page.message_user(request, told % named(name), messages.ERROR)
    if paused:
        page.message_user(request, _("Paused: %s.") % ", ".join(paused), messages.SUCCESS)
    else:
        page.message_user(request, _("No queue was paused."), messages.WARNING)


def _queues_of(request: HttpRequest, matching: QuerySet[Job]) -> tuple[list[str], str | None]:
    """Return the queues of the selected jobs, and after which there may be others."""
    names = matching.order_by().values_list("queue_name", flat=True)
    if not is_across(request):
        # Of ticked jobs, which are as many as a page has.
        return sorted(set(names)), None
    if QueueFilter.parameter_name in request.GET:
        return sorted(set(names[:1])), None
    all_names = queue_names(matching.db, _MOST_QUEUES + 1)
    looked = all_names[:_MOST_QUEUES]
    found = [name for name in looked if matching.filter(queue_name=name).exists()]
    return found, looked[-1] if len(all_names) > _MOST_QUEUES else None
