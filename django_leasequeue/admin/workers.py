"""The workers' page: who is there, what each runs and for how long; drain one from afar."""

from __future__ import annotations

from typing import Any

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db import connections
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path
from django.utils.decorators import method_decorator
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_POST

from django_leasequeue.admin import display
from django_leasequeue.admin.attending import attending
from django_leasequeue.admin.base import OperatorAdmin
from django_leasequeue.admin.changing import in_one
from django_leasequeue.admin.pages import page, url_of
from django_leasequeue.admin.reason import reason_of
from django_leasequeue.admin.takers import read_present
from django_leasequeue.conf import get_conf
from django_leasequeue.core.clock import read_now
from django_leasequeue.core.presence import request_drain
from django_leasequeue.models import Worker

__all__ = ["WorkerAdmin"]


@admin.register(Worker)
class WorkerAdmin(OperatorAdmin[Worker]):
    """Shows the workers that announced themselves; their rows decide nothing about jobs."""

    fields = (
        *("name", "host", "pid", "version", "queues", "children", "current_jobs"),
        *("started", "seen", "stopped", "drain_asked"),
    )

    def get_urls(self) -> list[URLPattern]:
        """Return the model's addresses, and those of the live part and of draining."""
        view = self.admin_site.admin_view
        own = [
            path("live/", view(self.live_view), name="leasequeue_worker_live"),
            path("<int:pk>/drain/", view(self.drain_view), name="leasequeue_worker_drain"),
        ]
        return [*own, *super().get_urls()]

    def has_drain_permission(self, request: HttpRequest) -> bool:
        """Tell whether the user may drain workers."""
        return self.may(request, "drain", Worker)

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        self._check_view(request)
        shown = {**self._shown(request), **(extra_context or {})}
        return page(self, request, "workers.html", _("Workers"), shown)

    def live_view(self, request: HttpRequest) -> HttpResponse:
        """Return the part of the page that changes, for the script that refreshes it."""
        self._check_view(request)
        return TemplateResponse(request, "admin/leasequeue/_workers.html", self._shown(request))

    @method_decorator(require_POST)
    def drain_view(self, request: HttpRequest, pk: int) -> HttpResponse:
        """Ask a worker to drain, for the posted reason, if it still is the one of that name."""
        if not self.has_drain_permission(request):
            raise PermissionDenied
        worker = self.get_queryset(request).filter(pk=pk).first()
        if worker is None:
            raise Http404
        if (reason := reason_of(request)) is None:
            return HttpResponseRedirect(url_of(self, "worker_changelist"))
        name = request.POST.get("name", "")

        def work() -> bool:
            asked = request_drain(connections[get_conf().DATABASE], pk, name)
            if asked:
                self.log(request, [worker], f"Drained: {reason}")
            return asked

        if in_one(work):
            told = gettext("%s was asked to drain: it learns of it within seconds.") % name
            self.message_user(request, told, messages.SUCCESS)
        else:
            told = gettext("Nothing was asked: it was before, or the worker is gone.")
            self.message_user(request, told, messages.WARNING)
        return HttpResponseRedirect(url_of(self, "worker_changelist"))

    def _check_view(self, request: HttpRequest) -> None:
        if not self.has_view_or_change_permission(request):
            raise PermissionDenied

    def _shown(self, request: HttpRequest) -> dict[str, Any]:
        alias = get_conf().DATABASE
        now = read_now(connections[alias])
        workers, more = attending(read_present(alias, now), self.admin_site.name, now)
        return {
            "now": now,
            "workers": workers,
            "more": more,
            "may_drain": self.has_drain_permission(request),
            "live_url": url_of(self, "worker_live"),
        }

    @admin.display(description=_("started"))
    def started(self, worker: Worker) -> str:
        """Show when the worker announced itself."""
        return display.moment(worker.started_at)

    @admin.display(description=_("last seen"))
    def seen(self, worker: Worker) -> str:
        """Show when the worker was there last."""
        return display.moment(worker.seen_at)

    @admin.display(description=_("stopped"))
    def stopped(self, worker: Worker) -> str:
        """Show when the worker said that it stops."""
        return display.moment(worker.stopped_at)

    @admin.display(description=_("asked to drain"))
    def drain_asked(self, worker: Worker) -> str:
        """Show when an operator asked the worker to drain."""
        return display.moment(worker.drain_requested_at)
