"""Requeue or cancel from the list of jobs: shown first how many, then done by a bulk run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from django import forms
from django.contrib import messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.contrib.admin.views.main import ALL_VAR, ORDER_VAR, PAGE_VAR
from django.db import connections
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from django_leasequeue.admin.asking import Question, answer_of, ask
from django_leasequeue.admin.base import OperatorAdmin
from django_leasequeue.admin.beginning import already, begin
from django_leasequeue.admin.bulk import GONE, MOST, Selection, is_across, meant, widened
from django_leasequeue.admin.display import moment, word
from django_leasequeue.admin.reason import ReasonForm
from django_leasequeue.admin.wanted import NOT_SHOWN, moment_of
from django_leasequeue.core.bulk_filter import JobFilter
from django_leasequeue.core.bulk_plan import Options
from django_leasequeue.core.bulk_token import is_token, next_token
from django_leasequeue.models import Job
from django_leasequeue.statuses import Status

__all__ = ["run_of_list"]

_TITLES = {"requeue": _("Requeue jobs"), "cancel": _("Cancel jobs")}
_VERBS = {"requeue": _("Requeue"), "cancel": _("Cancel these jobs")}
#: What of a list's address says nothing of which jobs it is for.
_HOW_SHOWN = {ALL_VAR, ORDER_VAR, PAGE_VAR}


class _ListedForm(ReasonForm):
    """Why, and what was shown: how many jobs, in which statuses, by which token."""

    most = forms.IntegerField(widget=forms.HiddenInput, min_value=1, max_value=MOST)
    statuses = forms.CharField(widget=forms.HiddenInput)
    token = forms.CharField(widget=forms.HiddenInput, max_length=64)


def run_of_list(
    page: OperatorAdmin[Job], request: HttpRequest, matching: QuerySet[Job], operation: str
) -> HttpResponse | None:
    """Ask why, with the number of jobs; once answered, start the run and lead to its page.

    It changes no more jobs than were counted, none that came up or died after the list was
    shown, and none in another status than the list, and the question, showed. None, after a
    message, when the request does not say when its list was shown.
    """
    shown_at = moment_of(request.POST.get("shown_at", ""))
    if shown_at is None:
        messages.error(request, NOT_SHOWN)
        return None
    connection = connections[matching.db]
    about = (operation, "listed", *_address(request), *_selected(request))
    form = _ListedForm(answer_of(request))
    if form.is_valid():
        token = form.cleaned_data["token"]
        if not is_token(connection, token, *about):
            form.add_error(None, _("This is another list's confirmation: begin again."))
        elif found := already(page, request, token):
            return found
        elif chosen := _chosen(request, matching, operation, form.cleaned_data, shown_at):
            options = Options(most=form.cleaned_data["most"])
            reason = form.cleaned_data["reason"]
            return begin(page, request, operation, chosen, options, token, reason)
    selection = Selection.of(matching, meant(request, operation), shown_at)
    form.initial = {
        "most": len(selection.ids) or 1,
        "statuses": ",".join(widened([*selection.statuses], meant(request, operation))),
        "token": next_token(connection, *about),
    }
    left = selection.left_out(request, page.get_queryset(request), matching)
    question = _question(operation, selection, left, shown_at)
    return ask(page, request, question, form)


def _address(request: HttpRequest) -> list[tuple[str, list[str]]]:
    return sorted((name, held) for name, held in request.GET.lists() if name not in _HOW_SHOWN)


def _selected(request: HttpRequest) -> Sequence[object]:
    return ["all"] if is_across(request) else sorted(request.POST.getlist(ACTION_CHECKBOX_NAME))


def _chosen(
    request: HttpRequest,
    matching: QuerySet[Job],
    operation: str,
    data: dict[str, Any],
    shown_at: datetime,
) -> JobFilter | None:
    """Return what the run is for; None when nothing of what was shown is left."""
    shown = data["statuses"].split(",")
    statuses = [status for status in meant(request, operation) if status in shown]
    selection = Selection.of(matching, statuses, shown_at)
    if not selection.ids:
        return None
    return JobFilter(ids=selection.ids, statuses=statuses, died_before=shown_at)


def _question(
    operation: str, selection: Selection, left: Counter[str], shown_at: datetime
) -> Question:
    count = len(selection.ids)
    if operation == "requeue":
        said = ngettext(
            "%d job would be ready again, with a fresh allowance of attempts",
            "%d jobs would be ready again, with a fresh allowance of attempts",
            count,
        )
    else:
        said = ngettext("%d job would be cancelled", "%d jobs would be cancelled", count)
    lines = [f"{said % count}{': ' if count else ''}{_by_words(selection.statuses)}."]
    if selection.more:
        lines.append(gettext("%d is the most at once: these are the oldest.") % MOST)
    if any(left.values()):
        lines.append(gettext("Left out: %s.") % _by_words(left))
    if selection.statuses[Status.RESERVED]:
        lines.append(gettext("Those that run are stopped; what they have done stays."))
    lines.append(gettext("What came up or died after %s is left alone.") % moment(shown_at))
    carried = [("shown_at", shown_at.isoformat())]
    return Question(_TITLES[operation], _VERBS[operation] if count else "", lines, carried=carried)


def _by_words(counts: Counter[str]) -> str:
    found = sorted((status, number) for status, number in counts.items() if number)
    return ", ".join(
        f"{number} {gettext('gone') if status == GONE else word(status)}"
        for status, number in found
    )
