"""Starting a bulk run from a page: shown first, how many it is for, and never more than these."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from django_leasequeue.admin.base import OperatorAdmin
from django_leasequeue.admin.dead_forms import RunForm
from django_leasequeue.admin.display import moment
from django_leasequeue.admin.groups import Look
from django_leasequeue.admin.pages import page, url_of
from django_leasequeue.admin.wanted import moment_of, query_of, wanted_of
from django_leasequeue.conf import get_conf
from django_leasequeue.core.bulk import start
from django_leasequeue.core.bulk_filter import JobFilter
from django_leasequeue.core.bulk_plan import Options
from django_leasequeue.core.bulk_step import step
from django_leasequeue.exceptions import LeaseQueueError
from django_leasequeue.models import BulkRun, DeadGroup, Job
from django_leasequeue.statuses import Status

__all__ = ["STEP_SECONDS", "BulkStart"]

#: How long one request works on a run.
STEP_SECONDS = 1.0
_RECENT = 50

_TITLES = {"requeue": _("Requeue dead letters"), "cancel": _("Discard dead letters")}


class BulkStart(OperatorAdmin[DeadGroup]):
    """The confirmation, and what follows it."""

    def confirm_view(self, request: HttpRequest, operation: str) -> HttpResponse:
        """Ask, with the number of jobs; once confirmed, start the run and show its progress."""
        self._check_operation(request, operation)
        wanted = wanted_of(request.GET)
        only_cancels = operation == "cancel"
        form = RunForm(request.POST or None, only_cancels=only_cancels)
        if form.is_valid() and (shown_at := moment_of(form.cleaned_data["shown_at"])):
            chosen = JobFilter(**wanted._asdict(), died_before=shown_at)
            return self._start(request, operation, chosen, form)
        look = Look.at(self._connection(), wanted)
        form.initial = {"shown_at": look.now.isoformat(), "most": len(look.letters) or 1}
        context = {
            "look": look,
            "count": len(look.letters),
            "wanted": wanted,
            "operation": operation,
            "form": form,
            "query": query_of(wanted),
            "shown_moment": moment(look.now),
        }
        return page(self, request, "bulk_confirm.html", _TITLES[operation], context)

    def selected_view(self, request: HttpRequest, operation: str) -> HttpResponse:
        """Start a run for ticked jobs that have been dead since before the page was shown."""
        self._check_operation(request, operation)
        shown_at = moment_of(request.POST.get("shown_at", ""))
        ticked = [int(pk) for pk in request.POST.getlist("job") if pk.isdecimal() and len(pk) < 19]
        reason = request.POST.get("reason", "").strip()[:500]
        jobs = Job.objects.using(get_conf().DATABASE)
        dead = (
            jobs.filter(pk__in=ticked[:1000], status=Status.DEAD, finished_at__lt=shown_at)
            if shown_at
            else jobs.none()
        )
        ids = list(dead.values_list("pk", flat=True))
        if not ids or not reason:
            told = _("Tick jobs that are still dead, and give a reason.")
            messages.warning(request, told)
            group = url_of(self, "deadgroup_group")
            return HttpResponseRedirect(f"{group}?{query_of(wanted_of(request.GET))}")
        run = start(operation, JobFilter(ids=ids), Options(), by=_by(request), using=jobs.db)
        return self._started(request, run, reason)

    def _start(
        self, request: HttpRequest, operation: str, chosen: JobFilter, form: RunForm
    ) -> HttpResponse:
        using = get_conf().DATABASE
        recent = BulkRun.objects.using(using).filter(operation=operation, by=_by(request))
        for run in recent.order_by("-pk")[:_RECENT]:
            # The moment that the page was shown makes it one of its kind.
            if run.filter == chosen.as_json():
                messages.warning(request, _("This run was started already."))
                return self._to_run(run)
        try:
            run = start(operation, chosen, form.options(), by=_by(request), using=using)
        except LeaseQueueError as error:
            raise Http404(str(error)) from None
        return self._started(request, run, form.cleaned_data["reason"])

    def _started(self, request: HttpRequest, run: BulkRun, reason: str) -> HttpResponse:
        self.log(request, [run], f"Started: {reason}")
        step(self._connection(), run.pk, seconds=STEP_SECONDS)
        return self._to_run(run)

    def _to_run(self, run: BulkRun) -> HttpResponseRedirect:
        return HttpResponseRedirect(url_of(self, "bulkrun_change", run.pk))

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


def _by(request: HttpRequest) -> str:
    return request.user.get_username()[:255]
