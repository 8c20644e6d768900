"""The queues' page: depth, age, the last hour; pause and resume, each with who and why."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.decorators import method_decorator
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_POST

from django_leasequeue.admin import display
from django_leasequeue.admin.base import OperatorAdmin
from django_leasequeue.admin.dashboard import dashboard
from django_leasequeue.admin.pages import page, url_of
from django_leasequeue.admin.pausing import pause_queue, resume_queue
from django_leasequeue.admin.reason import reason_of
from django_leasequeue.admin.standing import read_standing, titles
from django_leasequeue.conf import get_conf
from django_leasequeue.exceptions import EnqueueError
from django_leasequeue.models import Queue

__all__ = ["QueueAdmin"]

_LONGEST = 64


@admin.register(Queue)
class QueueAdmin(OperatorAdmin[Queue]):
    """Shows every queue that has jobs or is on hold; a queue has a row once it was paused."""

    fields = ("name", "running", "since", "paused_by", "pause_reason")

    def get_urls(self) -> list[URLPattern]:
        """Return the model's addresses, and those of the live parts and of what is posted."""
        views = {
            "live": self.live_view,
            "dashboard": self.dashboard_view,
            "pause": self.pause_view,
            "resume": self.resume_view,
        }
        own = [
            path(f"{name}/", self.admin_site.admin_view(view), name=f"leasequeue_queue_{name}")
            for name, view in views.items()
        ]
        return [*own, *super().get_urls()]

    def has_pause_permission(self, request: HttpRequest) -> bool:
        """Tell whether the user may pause and resume queues."""
        return self.may(request, "pause", Queue)

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        self._check_view(request)
        shown = {**self._shown(request), **(extra_context or {})}
        return page(self, request, "queues.html", _("Queues"), shown)

    def live_view(self, request: HttpRequest) -> HttpResponse:
        """Return the part of the page that changes, for the script that refreshes it."""
        self._check_view(request)
        return TemplateResponse(request, "admin/leasequeue/_queues.html", self._shown(request))

    def dashboard_view(self, request: HttpRequest) -> HttpResponse:
        """Return the dashboard alone, for the script that refreshes it."""
        self._check_view(request)
        shown = {"board": dashboard(request, self.admin_site.name)}
        return TemplateResponse(request, "admin/leasequeue/_dashboard.html", shown)

    @method_decorator(require_POST)
    def pause_view(self, request: HttpRequest) -> HttpResponse:
        """Put the posted queue on hold for the posted reason."""
        name = self._posted(request)
        if (reason := reason_of(request)) is None:
            return self._back(request)
        try:
            changed = pause_queue(self, request, name, reason)
        except EnqueueError:
            self.message_user(request, _("No queue can have that name."), messages.ERROR)
            return self._back(request)
        told = gettext("%s is paused.") if changed else gettext("%s was paused already.")
        return self._told(request, told % name, changed=changed)

    @method_decorator(require_POST)
    def resume_view(self, request: HttpRequest) -> HttpResponse:
        """Let the posted queue run again, for the posted reason."""
        name = self._posted(request)
        if (reason := reason_of(request)) is None:
            return self._back(request)
        changed = resume_queue(self, request, name, reason)
        told = gettext("%s runs again.") if changed else gettext("%s was not paused.")
        return self._told(request, told % name, changed=changed)

    def _posted(self, request: HttpRequest) -> str:
        if not self.has_pause_permission(request):
            raise PermissionDenied
        return request.POST.get("queue", "").replace("\0", "")

    def _told(self, request: HttpRequest, told: str, *, changed: bool) -> HttpResponse:
        self.message_user(request, told, messages.SUCCESS if changed else messages.WARNING)
        return self._back(request)

    def _back(self, request: HttpRequest) -> HttpResponse:
        if not self.has_view_or_change_permission(request):
            return HttpResponseRedirect(reverse(f"{self.admin_site.name}:index"))
        return HttpResponseRedirect(url_of(self, "queue_changelist"))

    def _check_view(self, request: HttpRequest) -> None:
        if not self.has_view_or_change_permission(request):
            raise PermissionDenied

    def _shown(self, request: HttpRequest) -> dict[str, Any]:
        after = request.GET.get("after", "")[:_LONGEST].replace("\0", "")
        standing = read_standing(get_conf().DATABASE, self.admin_site.name, after=after)
        pasts = self._pasts(request, [line.name for line in standing.lines])
        return {
            "standing": standing,
            "lines": [(line, pasts.get(line.name, "")) for line in standing.lines],
            "titles": titles(),
            "may_pause": self.has_pause_permission(request),
            "pause_url": url_of(self, "queue_pause"),
            "resume_url": url_of(self, "queue_resume"),
            "live_url": url_of(self, "queue_live"),
            "after": after,
        }

    def _pasts(self, request: HttpRequest, names: Sequence[str]) -> dict[str, str]:
        """Return where the histories are of those queues that were ever paused."""
        rows = self.get_queryset(request).filter(name__in=names).values_list("name", "pk")
        return {name: url_of(self, "queue_history", pk) for name, pk in rows}

    @admin.display(description=_("runs"), boolean=True)
    def running(self, queue: Queue) -> bool:
        """Show whether workers claim from the queue."""
        return queue.paused_at is None

    @admin.display(description=_("paused at"))
    def since(self, queue: Queue) -> str:
        """Show when the queue was put on hold."""
        return display.moment(queue.paused_at)
