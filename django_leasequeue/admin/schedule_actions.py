"""What an operator does to schedules: enable, disable, run now, delete, each for a reason."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from django import forms
from django.contrib import messages
from django.contrib.admin.models import CHANGE, DELETION
from django.core.validators import RegexValidator
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils.translation import gettext, ngettext_lazy
from django.utils.translation import gettext_lazy as _

from django_leasequeue.admin.asking import Question, answer_of, ask
from django_leasequeue.admin.base import OperatorAdmin
from django_leasequeue.admin.changing import in_one
from django_leasequeue.admin.reason import ReasonForm
from django_leasequeue.conf import get_conf
from django_leasequeue.core import schedules
from django_leasequeue.exceptions import ScheduleError
from django_leasequeue.models import Schedule

if TYPE_CHECKING:
    from django.utils.functional import _StrOrPromise

__all__ = ["DELETE", "DISABLE", "ENABLE", "RUN", "ScheduleAction", "act_on"]

#: Schedules of one action; a form has room for them.
_MOST = 500


class _Form(ReasonForm):
    """Why; and what tells this form from any other, so that what it does is done once."""

    token = forms.CharField(
        widget=forms.HiddenInput, validators=[RegexValidator(r"\A[0-9a-f]{32}\Z")]
    )


@dataclass(frozen=True)
class ScheduleAction:
    """Changes one schedule, by name, and says what is wrong or was so already; None: it did."""

    title: _StrOrPromise
    verb: _StrOrPromise
    logged: str
    #: With a place for how many.
    done: _StrOrPromise
    change: Callable[[str, str], str | None]
    flag: int = CHANGE


def act_on(
    page: OperatorAdmin[Schedule],
    request: HttpRequest,
    selected: QuerySet[Schedule],
    action: ScheduleAction,
    back: str = "",
) -> HttpResponse:
    """Ask why, naming the schedules; once answered, change those that were named.

    `back` is where that leads, if not to where it was asked.
    """
    form = _Form(answer_of(request), initial={"token": secrets.token_hex(16)})
    found = list(selected.order_by("name")[: _MOST + 1])
    rows = found[:_MOST]
    if form.is_valid():
        _change(page, request, rows, action, form.cleaned_data)
        return HttpResponseRedirect(back or request.get_full_path())
    said = [gettext("It is for these schedules.")]
    if len(found) > _MOST:
        said.append(gettext("%d is the most at once: these are the first by name.") % _MOST)
    question = Question(action.title, action.verb, said, [row.name for row in rows], back=back)
    return ask(page, request, question, form, [row.pk for row in rows])


def _change(
    page: OperatorAdmin[Schedule],
    request: HttpRequest,
    rows: Sequence[Schedule],
    action: ScheduleAction,
    data: dict[str, str],
) -> None:
    count = 0
    for row in rows:

        def work(row: Schedule = row) -> str | None:
            left = action.change(row.name, data["token"])
            if left is None:
                page.log(request, [row], f"{action.logged}: {data['reason']}", action.flag)
            return left

        try:
            left = in_one(work)
        except ScheduleError as error:
            page.message_user(request, f"{row.name}: {error}", messages.ERROR)
            continue
        if left is None:
            count += 1
        elif left:
            page.message_user(request, f"{row.name}: {left}", messages.WARNING)
    level = messages.SUCCESS if count else messages.WARNING
    page.message_user(request, action.done % count, level)


def _enable(name: str, _token: str) -> str | None:
    return None if schedules.enable_schedule(name, using=get_conf().DATABASE) else ""


def _disable(name: str, _token: str) -> str | None:
    return None if schedules.disable_schedule(name, using=get_conf().DATABASE) else ""


def _run(name: str, token: str) -> str | None:
    """Enqueue its job; a second click finds the job of the first."""
    job = schedules.run_schedule(name, token=token, using=get_conf().DATABASE)
    return None if job.created else gettext("job %d is there already") % job.pk


def _delete(name: str, _token: str) -> str | None:
    rows = Schedule.objects.using(get_conf().DATABASE).filter(name=name)
    return None if rows.delete()[0] else ""


ENABLE = ScheduleAction(
    _("Enable schedules"),
    _("Enable"),
    "Enabled",
    ngettext_lazy("%d schedule was enabled.", "%d schedules were enabled."),
    _enable,
)
DISABLE = ScheduleAction(
    _("Disable schedules"),
    _("Disable"),
    "Disabled",
    ngettext_lazy("%d schedule was disabled.", "%d schedules were disabled."),
    _disable,
)
RUN = ScheduleAction(
    _("Run schedules now"),
    _("Run now"),
    "Run now",
    ngettext_lazy("%d job was enqueued.", "%d jobs were enqueued."),
    _run,
)
DELETE = ScheduleAction(
    _("Delete schedules"),
    _("Delete"),
    "Deleted",
    ngettext_lazy("%d schedule was deleted.", "%d schedules were deleted."),
    _delete,
    DELETION,
)
