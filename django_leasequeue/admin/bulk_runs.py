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
from django.views.decorators.http import require_GET, require_POST

from django_leasequeue.admin import display
from django_leasequeue.admin.base import OperatorAdmin
from django_leasequeue.admin.beginning import STEP_SECONDS, carries, to_run
from django_leasequeue.admin.changing import in_one
from django_leasequeue.admin.pages import address_of, page, url_of
from django_leasequeue.admin.paging import CappedPaginator
from django_leasequeue.admin.reason import reason_of
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
_OPERATIONS = {"requeue": _("requeue"), "cancel": _("cancel")}
#: What a `JobFilter` and the options are called on the page.
_CONDITIONS = {
    "queue": _("queue"),
    "job_type": _("job type"),
    "statuses": _("statuses"),
    "fingerprint": _("fingerprint"),
    "died_after": _("died after"),
    "died_before": _("died before"),
    "ids": _("jobs"),
    "without": _("without the groups"),
    "rate": _("rate"),
    "canary": _("canary"),
    "canary_wait": _("wait for the canary"),
    "spread": _("spread"),
    "most": _("at most"),
}
_FRAGMENT = "admin/leasequeue/bulk_progress.html"
_GOES_ON = (State.CANARY, State.RUNNING)
_OPEN = (*_GOES_ON, State.STOPPED)


@admin.register(BulkRun)
class BulkRunAdmin(OperatorAdmin[BulkRun]):
    """Runs are started elsewhere; here they are watched, carried on and cancelled."""

    list_display = ("name", "state_words", "changed", "by", "started")
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
            address_of(self, "<int:run_id>/progress/", require_GET(self.progress_view), "progress"),
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
        entries = self._entries(run)
        context = {
            **self._progress(request, run),
            "carries": carries(request, run),
            "asks": self._asks(request, run),
            "entries": list(entries.select_related("user").order_by("pk")[:20]),
            "conditions": _conditions(run),
        }
        return page(self, request, "bulk_run.html", self.name(run), context)

    def progress_view(self, request: HttpRequest, run_id: int) -> HttpResponse:
        """Return what changes of a run's page, for a script that only looks."""
        run = self.get_object(request, str(run_id))
        if not self.has_view_permission(request, run):
            raise PermissionDenied
        if run is None:
            raise Http404(gettext("There is no such run."))
        return TemplateResponse(request, _FRAGMENT, self._progress(request, run))

    def go_view(self, request: HttpRequest, run_id: int) -> HttpResponse:
        """Carry the run on for a moment; answer a script with what has changed of the page.

        Who has not started it, or carried it on before, says why; so does who lets one that
        stopped look at the jobs that went first again.
        """
        run = self._run(request, run_id)
        connection = connections[get_conf().DATABASE]
        scripted = request.headers.get("X-Requested-With") == "fetch"
        # One that stopped since the script's last turn: the page is loaded again, and asks why.
        if not (scripted and run.state == State.STOPPED):
            if self._asks(request, run):
                if (reason := reason_of(request)) is None:
                    return to_run(self, request, run, carries=False)
                in_one(lambda: self._reopen(request, run, reason))
            step(connection, run.pk, seconds=STEP_SECONDS)
        if scripted:
            run.refresh_from_db(using=get_conf().DATABASE)
            return TemplateResponse(request, _FRAGMENT, self._progress(request, run))
        return to_run(self, request, run, carries=True)

    def _reopen(self, request: HttpRequest, run: BulkRun, reason: str) -> None:
        self.log(request, [run], f"Carried on: {reason}")
        reopen(connections[get_conf().DATABASE], run.pk)

    def cancel_view(self, request: HttpRequest, run_id: int) -> HttpResponse:
        """End the run for good; what it did stays."""
        run = self._run(request, run_id)
        if (reason := reason_of(request)) is None:
            return HttpResponseRedirect(url_of(self, "bulkrun_change", run.pk))

        def work() -> bool:
            changed = cancel_run(run.pk, using=get_conf().DATABASE)
            if changed:
                self.log(request, [run], f"Cancelled: {reason}")
            return changed

        if in_one(work):
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

    def _entries(self, run: BulkRun) -> QuerySet[LogEntry]:
        return LogEntry.objects.filter(
            content_type=get_content_type_for_model(run), object_id=str(run.pk)
        )

    def _asks(self, request: HttpRequest, run: BulkRun) -> bool:
        """Tell whether this user has to say why the run is carried on."""
        if run.state not in _OPEN:
            return False
        if run.state == State.STOPPED:
            return True
        user: Any = request.user
        return not self._entries(run).filter(user=user).exists()

    def _progress(self, request: HttpRequest, run: BulkRun) -> dict[str, Any]:
        return {
            "run": run,
            "operation": _operation(run),
            "state": self.state_words(run),
            "goes_on": run.state in _GOES_ON,
            "stopped": run.state == State.STOPPED,
            "open": run.state in _OPEN,
            "left_out": [(_REASONS.get(k, k), n) for k, n in sorted(run.left_out.items())],
            "most": run.options.get("most"),
            "may_drive": self.may(request, run.operation, Job),
            "updated": display.moment(run.updated_at),
        }

    @admin.display(description=_("bulk run"))
    def name(self, run: BulkRun) -> str:
        """Show what it does, and its number."""
        return f"{_operation(run)} #{run.pk}"

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


def _operation(run: BulkRun) -> str:
    return str(_OPERATIONS.get(run.operation, run.operation))


def _conditions(run: BulkRun) -> list[tuple[str, str]]:
    """Return which jobs it is for, and how it goes about it, as they lie in the row."""
    given = {**run.filter, **{k: v for k, v in run.options.items() if v}}
    if ids := given.get("ids"):
        given["ids"] = gettext("%d named jobs") % len(ids)
    if isinstance(statuses := given.get("statuses"), list):
        given["statuses"] = [display.word(status) for status in statuses]
    return [
        (
            str(_CONDITIONS.get(name, name)),
            ", ".join(value) if isinstance(value, list) else str(value),
        )
        for name, value in given.items()
    ]
