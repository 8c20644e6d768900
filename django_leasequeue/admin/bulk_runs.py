"""Bulk runs: how far each has come, and to carry it on or to cancel it."""

from __future__ import annotations

from typing import Any

from django.contrib import admin, messages
from django.contrib.admin.models import LogEntry
from django.contrib.admin.options import get_content_type_for_model
from django.core.exceptions import PermissionDenied
from django.db import connections
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_POST

from django_leasequeue.admin import display
from django_leasequeue.admin.base import OperatorAdmin
from django_leasequeue.admin.bulk_start import STEP_SECONDS
from django_leasequeue.admin.pages import address_of, page, url_of
from django_leasequeue.admin.paging import CappedPaginator
from django_leasequeue.conf import get_conf
from django_leasequeue.core.bulk import cancel_run
from django_leasequeue.core.bulk_canary import reopen
from django_leasequeue.core.bulk_plan import State
from django_leasequeue.core.bulk_step import step
from django_leasequeue.models import BulkRun, Job

__all__ = ["BulkRunAdmin"]

_STATES = {
    State.CANARY: _("waits for the jobs that went first"),
    State.RUNNING: _("running"),
    State.STOPPED: _("stopped"),
    State.FINISHED: _("finished"),
    State.CANCELLED: _("cancelled"),
}
_REASONS = {
    "key_held": _("another job has their key"),
    "locked": _("somebody had them locked"),
    "other_status": _("no longer in that status"),
    "gone": _("gone"),
}
_GOES_ON = (State.CANARY, State.RUNNING)


@admin.register(BulkRun)
class BulkRunAdmin(OperatorAdmin[BulkRun]):
    """Runs are started elsewhere; here they are watched, carried on and cancelled."""

    list_display = ("__str__", "state_words", "changed", "by", "started")
    ordering = ("-id",)
    sortable_by = ()
    paginator = CappedPaginator

    def get_queryset(self, request: HttpRequest) -> QuerySet[BulkRun]:
        # Up to 50 000 ids lie in it.
        return super().get_queryset(request).defer("filter")

    def has_view_permission(self, request: HttpRequest, obj: BulkRun | None = None) -> bool:
        rights = (("view", BulkRun), ("requeue", Job), ("cancel", Job))
        return any(self.may(request, action, model) for action, model in rights)

    def get_urls(self) -> list[URLPattern]:
        def view(address: str, function: Any, name: str) -> URLPattern:
            return address_of(self, address, require_POST(function), name)

        return [
            view("<int:run_id>/go/", self.go_view, "go"),
            view("<int:run_id>/cancel/", self.cancel_view, "cancel"),
            *super().get_urls(),
        ]

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """Show a run; nothing of it is edited."""
        run = self.get_object(request, object_id)
        if not self.has_view_permission(request, run) or request.method == "POST":
            raise PermissionDenied
        if run is None:
            raise Http404(gettext("There is no such run."))
        entries = LogEntry.objects.filter(
            content_type=get_content_type_for_model(run), object_id=str(run.pk)
        )
        context = {
            **self._progress(request, run),
            "entries": list(entries.select_related("user").order_by("pk")[:20]),
            "conditions": _conditions(run),
        }
        return page(self, request, "bulk_run.html", str(run), context)

    def go_view(self, request: HttpRequest, run_id: int) -> HttpResponse:
        """Carry the run on for a moment; answer a script with what has changed of the page.

        One that stopped looks at the jobs that went first again, for a reason.
        """
        run = self._run(request, run_id)
        reason = request.POST.get("reason", "").strip()[:500]
        if run.state == State.STOPPED and not reason:
            messages.warning(request, _("Give a reason."))
        elif run.state == State.STOPPED and reopen(connections[get_conf().DATABASE], run.pk):
            self.log(request, [run], f"Carried on: {reason}")
        step(connections[get_conf().DATABASE], run.pk, seconds=STEP_SECONDS)
        if request.headers.get("X-Requested-With") == "fetch":
            run.refresh_from_db(using=get_conf().DATABASE)
            context = self._progress(request, run)
            return TemplateResponse(request, "admin/leasequeue/bulk_progress.html", context)
        return HttpResponseRedirect(url_of(self, "bulkrun_change", run.pk))

    def cancel_view(self, request: HttpRequest, run_id: int) -> HttpResponse:
        """End the run for good; what it did stays."""
        run = self._run(request, run_id)
        reason = request.POST.get("reason", "").strip()[:500]
        if not reason:
            messages.warning(request, _("Give a reason."))
        elif cancel_run(run.pk, using=get_conf().DATABASE):
            self.log(request, [run], f"Cancelled: {reason}")
            messages.success(request, _("The run was cancelled. What it did stays."))
        else:
            messages.warning(request, _("The run was over already."))
        return HttpResponseRedirect(url_of(self, "bulkrun_change", run.pk))

    def _run(self, request: HttpRequest, run_id: int) -> BulkRun:
        run = self.get_object(request, str(run_id))
        if run is None:
            raise Http404(gettext("There is no such run."))
        if not self.may(request, run.operation, Job):
            raise PermissionDenied
        return run

    def _progress(self, request: HttpRequest, run: BulkRun) -> dict[str, Any]:
        return {
            "run": run,
            "state": self.state_words(run),
            "goes_on": run.state in _GOES_ON,
            "stopped": run.state == State.STOPPED,
            "open": run.state in (*_GOES_ON, State.STOPPED),
            "left_out": [(_REASONS.get(k, k), n) for k, n in sorted(run.left_out.items())],
            "most": run.options.get("most"),
            "may_drive": self.may(request, run.operation, Job),
            "updated": display.moment(run.updated_at),
        }

    @admin.display(description=_("state"))
    def state_words(self, run: BulkRun) -> str:
        """Show the state in words."""
        # Plain SQL, or a newer version, may have put another one there.
        words = {state.value: said for state, said in _STATES.items()}
        return str(words.get(run.state, run.state))

    @admin.display(description=_("started at"))
    def started(self, run: BulkRun) -> str:
        """Show when it was started."""
        return display.moment(run.started_at)


def _conditions(run: BulkRun) -> list[tuple[str, str]]:
    """Return which jobs it is for, and how it goes about it, as they lie in the row."""
    given = {**run.filter, **{k: v for k, v in run.options.items() if v}}
    if ids := given.get("ids"):
        given["ids"] = gettext("%d named jobs") % len(ids)
    return [
        (name.replace("_", " "), ", ".join(value) if isinstance(value, list) else str(value))
        for name, value in given.items()
    ]
