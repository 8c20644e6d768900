"""Starting a bulk run from a page: shown first, how many it is for, and never more than these."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import Q
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from django_leasequeue.admin.base import OperatorAdmin
from django_leasequeue.admin.beginning import already, begin
from django_leasequeue.admin.dead_forms import RunForm
from django_leasequeue.admin.display import moment
from django_leasequeue.admin.groups import Look, Wanted, asleep
from django_leasequeue.admin.pages import page, url_of
from django_leasequeue.admin.reason import reason_of
from django_leasequeue.admin.wanted import NOT_SHOWN, moment_of, query_of, wanted_of
from django_leasequeue.conf import get_conf
from django_leasequeue.core.bulk_filter import JobFilter
from django_leasequeue.core.bulk_plan import Options
from django_leasequeue.core.bulk_token import is_token, next_token, token_of
from django_leasequeue.core.clock import read_now
from django_leasequeue.exceptions import LeaseQueueError
from django_leasequeue.models import DeadGroup, Job
from django_leasequeue.statuses import Status

__all__ = ["BulkStart"]

#: A page shows fewer; MariaDB makes a table of a list of a thousand, and scans that.
MOST_TICKED = 500

_TITLES = {"requeue": _("Requeue dead letters"), "cancel": _("Cancel dead letters")}


class BulkStart(OperatorAdmin[DeadGroup]):
    """The confirmation, and what follows it."""

    def confirm_view(self, request: HttpRequest, operation: str) -> HttpResponse:
        """Ask, with the number of jobs; once confirmed, start the run and show its progress."""
        self._check_operation(request, operation)
        wanted = wanted_of(request.GET)
        form = RunForm(request.POST or None, only_cancels=operation == "cancel")
        if form.is_valid():
            token, shown_at = form.cleaned_data["token"], moment_of(form.cleaned_data["shown_at"])
            if shown_at is None:
                form.add_error(None, NOT_SHOWN)
            elif is_token(self._connection(), token, operation, *wanted):
                return self._start(request, operation, wanted, shown_at, form)
            else:
                form.add_error(None, _("This is another page's confirmation: begin again."))
        look = Look.at(self._connection(), wanted)
        form.show(
            {
                "shown_at": look.now.isoformat(),
                "most": len(look.letters) or 1,
                "shown": len(look.letters),
                "oldest": look.oldest.isoformat() if look.oldest else "",
                "token": next_token(self._connection(), operation, *wanted),
                "without": ",".join(look.without),
            }
        )
        context = {
            "look": look,
            "count": len(look.letters),
            "wanted": wanted,
            "operation": operation,
            "form": form,
            "query": query_of(wanted),
            "other_sleep": query_of(wanted._replace(snoozed=True)),
            "shown_moment": moment(look.now),
        }
        return page(self, request, "bulk_confirm.html", _TITLES[operation], context)

    def selected_view(self, request: HttpRequest, operation: str) -> HttpResponse:
        """Start a run for ticked jobs that have been dead since before the page was shown."""
        self._check_operation(request, operation)
        if (reason := reason_of(request)) is None:
            return self._to_group(wanted_of(request.GET))
        if (shown_at := moment_of(request.POST.get("shown_at", ""))) is None:
            messages.error(request, NOT_SHOWN)
            return self._to_group(wanted_of(request.GET))
        ticked = [int(pk) for pk in request.POST.getlist("job") if pk.isdecimal() and len(pk) < 19]
        token = token_of(operation, shown_at, *sorted(ticked))
        if found := already(self, request, token):
            return found
        ids = _still_dead(ticked[:MOST_TICKED], shown_at)
        if not ids:
            messages.warning(request, _("Tick jobs that are still dead."))
            return self._to_group(wanted_of(request.GET))
        chosen = JobFilter(ids=ids, died_before=shown_at)
        return begin(self, request, operation, chosen, Options(), token, reason)

    def _start(
        self,
        request: HttpRequest,
        operation: str,
        wanted: Wanted,
        shown_at: datetime,
        form: RunForm,
    ) -> HttpResponse:
        """Start what was confirmed: what was snoozed then, or is now, is left out.

        So is what is older than all that was looked at: a run goes by type and id, and would
        else begin with jobs that nobody was shown.
        """
        data = form.cleaned_data
        now = read_now(self._connection())
        without = {*asleep(self._connection(), wanted, now)}
        without |= set(filter(None, data["without"].split(",")))
        try:
            oldest = moment_of(data["oldest"]) if data["most"] <= data["shown"] else None
            chosen = wanted.job_filter(died_after=oldest, died_before=shown_at, without=without)
        except LeaseQueueError as error:
            messages.error(request, gettext("Nothing was started: %s.") % error)
            return HttpResponseRedirect(url_of(self, "deadgroup_changelist"))
        options, token = form.options(), data["token"]
        return begin(self, request, operation, chosen, options, token, data["reason"])

    def _to_group(self, wanted: Wanted) -> HttpResponseRedirect:
        return HttpResponseRedirect(f"{url_of(self, 'deadgroup_group')}?{query_of(wanted)}")

    def _check_view(self, request: HttpRequest) -> None:
        if not self.has_view_permission(request):
            raise PermissionDenied

    def _check_operation(self, request: HttpRequest, operation: str) -> None:
        self._check_view(request)
        if operation not in _TITLES:
            raise Http404(gettext("There is no such operation."))
        if not self.may(request, operation, Job):
            raise PermissionDenied

    def _permissions(self, request: HttpRequest) -> dict[str, Any]:
        """Return what decides which controls a page has."""
        return {
            "may_requeue": self.may(request, "requeue", Job),
            "may_cancel": self.may(request, "cancel", Job),
            "may_annotate": self.may(request, "change", DeadGroup),
        }

    def _connection(self) -> BaseDatabaseWrapper:
        return connections[get_conf().DATABASE]


def _still_dead(ids: Sequence[int], shown_at: datetime) -> list[int]:
    """Return those that are dead, and were when the page was shown."""
    jobs = Job.objects.using(get_conf().DATABASE).filter(pk__in=ids, status=Status.DEAD)
    # Plain SQL can have made one dead without a time.
    before = Q(finished_at=None) | Q(finished_at__lt=shown_at)
    return list(jobs.filter(before).values_list("pk", flat=True))
