"""What is done from a job's own page: requeue, cancel, and a look at what is sensitive."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum, auto
from typing import Any

from django.contrib import admin, messages
from django.contrib.admin.utils import unquote
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import URLPattern
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_POST

from django_leasequeue.admin.changing import held, in_one
from django_leasequeue.admin.display import EMPTY, word
from django_leasequeue.admin.pages import address_of, url_of
from django_leasequeue.admin.payload_edit import PayloadEdit
from django_leasequeue.admin.reason import reason_of
from django_leasequeue.admin.run_of_job import run_of
from django_leasequeue.admin.wanted import NOT_SHOWN
from django_leasequeue.conf import get_conf
from django_leasequeue.core import operate
from django_leasequeue.core.bulk_plan import SOURCES
from django_leasequeue.models import Job
from django_leasequeue.registry import registry

__all__ = ["JobPages"]

_OPERATIONS = {
    "requeue": (operate.requeue, "Requeued", _("The job was requeued.")),
    "cancel": (operate.cancel, "Cancelled", _("The job was cancelled.")),
}


class _Ended(Enum):
    """What came of an operation."""

    DONE = auto()
    NOT_SHOWN = auto()
    CHANGED = auto()
    LEFT = auto()


_TOLD = {
    _Ended.NOT_SHOWN: NOT_SHOWN,
    _Ended.CHANGED: _("Nothing was done: it has changed since the page was shown. Look anew."),
    _Ended.LEFT: _("Nothing was changed: its status forbids it, or somebody has it locked."),
}


class JobPages(PayloadEdit):
    """A job's page and the addresses below it."""

    object_history_template = "admin/leasequeue/job_history.html"

    class Media:
        css = {"all": ["leasequeue/triage.css"]}

    def get_urls(self) -> list[URLPattern]:
        act = require_POST(self.act_view)
        payload = self.payload_view
        return [
            address_of(self, "<int:job_id>/payload/", payload, "payload"),
            address_of(self, "<int:job_id>/act/<str:operation>/", act, "act"),
            *super().get_urls(),
        ]

    def act_view(self, request: HttpRequest, job_id: int, operation: str) -> HttpResponse:
        """Requeue or cancel one job, and say what came of it."""
        job = self.get_object(request, str(job_id))
        if job is None or operation not in _OPERATIONS:
            raise Http404(gettext("There is no such job."))
        if not (self.has_view_permission(request, job) and self.may(request, operation, Job)):
            raise PermissionDenied
        if (reason := reason_of(request)) is not None:
            found = in_one(lambda: self._act(request, job, operation, reason))
            level = messages.SUCCESS if found is _Ended.DONE else messages.WARNING
            told = _OPERATIONS[operation][2] if found is _Ended.DONE else _TOLD[found]
            messages.add_message(request, level, told)
        return HttpResponseRedirect(url_of(self, "job_change", job.pk))

    def _act(self, request: HttpRequest, job: Job, operation: str, reason: str) -> _Ended:
        """Change the job if it still is what the page showed: its row stays locked meanwhile."""
        claims, status = request.POST.get("claims", ""), request.POST.get("status", "")
        if not (claims.isdecimal() and status):
            return _Ended.NOT_SHOWN
        now = held(job.pk, "claims", "status")
        if now is None:
            return _Ended.LEFT
        # The second click of two must not requeue what has run, and died, in between; nor cancel
        # what was dead, and is ready again.
        if (str(now.claims), now.status) != (claims, status):
            return _Ended.CHANGED
        change, logged, _told = _OPERATIONS[operation]
        if not change(job.pk, using=get_conf().DATABASE):
            return _Ended.LEFT
        self.log(request, [job], f"{logged}: {reason}")
        return _Ended.DONE

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **kwargs: Any
    ) -> HttpResponse:
        job = kwargs.get("obj")
        if job is not None:
            context["controls"] = self._controls(request, job)
        return super().render_change_form(request, context, *args, **kwargs)

    def history_view(
        self, request: HttpRequest, object_id: str, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Show the entries of the job, and the bulk run that changed it last."""
        job = self.get_object(request, unquote(object_id))
        found = run_of(job, self.admin_site) if job else None
        more = {"bulk_run": found, **(extra_context or {})}
        return super().history_view(request, object_id, more)

    @admin.display(description=_("last bulk run"))
    def bulk_run_words(self, job: Job) -> str | SafeString:
        """Show which bulk run changed it last, by whom and why."""
        found = run_of(job, self.admin_site)
        if found is None:
            return EMPTY
        line = format_html("{}, {}, {}: {}", found.name, found.when, found.by, found.why or "-")
        return format_html('<a href="{}">{}</a>', found.url, line) if found.url else line

    def reveals(self, request: HttpRequest) -> bool:
        """Tell whether sensitive fields were asked for by somebody who may see them."""
        return "reveal" in request.GET and request.user.has_perm("leasequeue.view_payload")

    def links(self, jobs: Iterable[tuple[int, str, str]]) -> str | SafeString:
        """Return a list of links to other jobs' pages."""
        items = [
            (url_of(self, "job_change", pk), pk, queue, word(status)) for pk, queue, status in jobs
        ]
        if not items:
            return EMPTY
        lines = format_html_join("", '<li><a href="{}">#{}</a> {}, {}</li>', items)
        return format_html("<ul>{}</ul>", lines)

    def _controls(self, request: HttpRequest, job: Job) -> dict[str, bool]:
        """Return what can be done to the job, by this user, as it is now."""
        declaration = registry.get(job.job_type)
        sensitive = declaration is not None and bool(declaration.sensitive)
        can = {
            name: job.status in SOURCES[name] and self.may(request, name, Job)
            for name in _OPERATIONS
        }
        return {
            **can,
            "any": any(can.values()),
            "edit": job.status in operate.REQUEUED and self.may_edit_payload(request, job),
            "reveal": sensitive
            and not self.reveals(request)
            and request.user.has_perm("leasequeue.view_payload"),
        }
