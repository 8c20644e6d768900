"""The jobs: a list to triage dead letters in, and a page that shows all of one job."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from django.contrib import admin
from django.db.models import QuerySet, TextField
from django.db.models.functions import Cast
from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from django_leasequeue.admin import display, related
from django_leasequeue.admin.actions import ShownForm, cancel_jobs, pause_queues, requeue_jobs
from django_leasequeue.admin.filters import JobTypeFilter, QueueFilter, StatusFilter
from django_leasequeue.admin.lookup import matching_ids
from django_leasequeue.admin.one_job import JobPages
from django_leasequeue.admin.paging import CappedChangeList, CappedPaginator
from django_leasequeue.core.clock import UtcNow
from django_leasequeue.models import Job, JobAttempt, Queue
from django_leasequeue.registry import registry

if TYPE_CHECKING:
    from django.utils.functional import _StrOrPromise

__all__ = ["JobAdmin"]

_JSON = ("payload", "context", "result", "progress", "checkpoint")
_MOST_ATTEMPTS = 100

_Shown = str | SafeString


def _column(
    name: str, title: _StrOrPromise, show: Callable[[Any], _Shown]
) -> Callable[[Any, Job], _Shown]:
    """Return a display method that shows what was read of a job as `name`."""

    @admin.display(description=title)
    def shown(page: Any, job: Job) -> _Shown:
        return show(vars(job)[name])

    return shown


def _json_column(name: str, title: _StrOrPromise) -> Callable[[Any, Job], _Shown]:
    """Return the same for JSON, without what the job's type declares as sensitive."""

    @admin.display(description=title)
    def shown(page: Any, job: Job) -> _Shown:
        declaration = registry.get(job.job_type)
        sensitive = declaration.sensitive if declaration else ()
        reveals = vars(job).get("reveals", False)
        return display.pretty_json(vars(job)[name], () if reveals else sensitive)

    return shown


@admin.register(Job)
class JobAdmin(JobPages):
    """Jobs are looked at, requeued and cancelled here; none is added or deleted."""

    change_form_template = "admin/leasequeue/job_change.html"
    action_form = ShownForm

    list_display = (
        "id",
        "type_link",
        "queue_link",
        "status_words",
        "attempts_used",
        "available",
        "short_error",
    )
    list_filter = (StatusFilter, QueueFilter, JobTypeFilter)
    ordering = ("-id",)

    def lookup_allowed(self, lookup: str, value: str, request: HttpRequest | None = None) -> bool:
        """Allow the filters and the id in the URL: other columns have no index, or are secret."""
        filters = {kind.parameter_name for kind in self.list_filter}
        return lookup in filters | {"id", "id__exact"}

    # Nothing else is a plain field in the list: the URL could sort by it, without an index.
    sortable_by = ("id",)
    paginator = CappedPaginator
    search_fields = ("id",)
    search_help_text = _("The id of a job, its idempotency_key, or the text of its key.")
    actions = (requeue_jobs, cancel_jobs, pause_queues)
    fieldsets = (
        (None, {"fields": ("id", "job_type", "queue_name", "status_words", "priority")}),
        (_("Payload"), {"fields": ("payload_text", "context_text")}),
        (_("Outcome"), {"fields": ("error", "fingerprint", "result_text")}),
        (
            _("Attempts"),
            {"fields": ("attempts_used", "crashes_used", "claims", "last_attempts", "effects")},
        ),
        (_("Lease"), {"fields": ("leased_by", "claimed", "leased_until")}),
        (_("Progress"), {"fields": ("progress_text", "checkpoint_text")}),
        (_("Times"), {"fields": ("created", "available", "expires", "updated", "finished")}),
        (_("Origin"), {"fields": ("idempotency_key", "live_key", "schedule", "tick", "timeout")}),
        (_("Operators"), {"fields": ("bulk_run_words",)}),
        (_("Related jobs"), {"fields": ("same_key", "same_type")}),
    )

    type_link = _column("job_type", _("job type"), display.filter_link("type"))
    queue_link = _column("queue_name", _("queue"), display.filter_link("queue"))
    short_error = _column("last_error", _("last error"), display.shortened)
    error = _column("last_error", _("last error"), display.block)
    claimed = _column("claimed_at", _("claimed at"), display.moment)
    leased_until = _column("lease_until", _("lease until"), display.moment)
    created = _column("created_at", _("created at"), display.moment)
    expires = _column("expires_at", _("expires at"), display.moment)
    updated = _column("updated_at", _("updated at"), display.moment)
    finished = _column("finished_at", _("finished at"), display.moment)
    tick = _column("tick_at", _("tick at"), display.moment)
    payload_text = _json_column("payload_json", _("payload"))
    context_text = _json_column("context_json", _("context"))
    result_text = _json_column("result_json", _("result"))
    progress_text = _json_column("progress_json", _("progress"))
    checkpoint_text = _json_column("checkpoint_json", _("checkpoint"))

    def get_queryset(self, request: HttpRequest) -> QuerySet[Job]:
        return super().get_queryset(request).defer(*_JSON).annotate(db_now=UtcNow())

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[CappedChangeList]:
        return CappedChangeList

    def get_object(
        self, request: HttpRequest, object_id: str, from_field: str | None = None
    ) -> Job | None:
        job = super().get_object(request, object_id, from_field)
        if job is not None:
            # As text: plain SQL may have put in what Python cannot decode.
            texts = {f"{name}_json": Cast(name, TextField()) for name in _JSON}
            vars(job).update(dict.fromkeys(texts), reveals=self.reveals(request))
            for row in self.get_queryset(request).filter(pk=job.pk).values(**texts):
                vars(job).update(row)
        return job

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Job], search_term: str
    ) -> tuple[QuerySet[Job], bool]:
        if term := search_term.strip():
            queryset = queryset.filter(pk__in=matching_ids(queryset.db, term))
        return queryset, False

    def has_requeue_permission(self, request: HttpRequest) -> bool:
        """Tell whether the user may requeue jobs."""
        return self.may(request, "requeue", Job)

    def has_cancel_permission(self, request: HttpRequest) -> bool:
        """Tell whether the user may cancel jobs."""
        return self.may(request, "cancel", Job)

    def has_pause_permission(self, request: HttpRequest) -> bool:
        """Tell whether the user may pause queues."""
        return self.may(request, "pause", Queue)

    @admin.display(description=_("status"))
    def status_words(self, job: Job) -> _Shown:
        """Show the status, as scheduled or retrying where it is that."""
        words = display.status_words(job, vars(job)["db_now"])
        return format_html(
            '<span class="leasequeue-status leasequeue-{}">{}</span>', job.status, words
        )

    @admin.display(description=_("available at"))
    def available(self, job: Job) -> str:
        """Show when it became available or will, and how long that is from now."""
        since = display.ago(job.available_at, vars(job)["db_now"])
        return f"{display.moment(job.available_at)} ({since})"

    @admin.display(description=_("effects"))
    def effects(self, job: Job) -> _Shown:
        """Show the effects that were committed."""
        return related.effects(job)

    @admin.display(description=_("the same key"))
    def same_key(self, job: Job) -> _Shown:
        """Link to jobs in other queues, or live ones, with the key of this."""
        return self.links(related.same_key(job))

    @admin.display(description=_("the same type and status"))
    def same_type(self, job: Job) -> _Shown:
        """Link to the jobs just before and after this one."""
        return self.links(related.same_type(job))

    @admin.display(description=_("attempts"))
    def attempts_used(self, job: Job) -> str:
        """Show attempts spent and allowed."""
        return f"{job.attempts}/{job.max_attempts}"

    @admin.display(description=_("crashes"))
    def crashes_used(self, job: Job) -> str:
        """Show crashes counted and allowed."""
        return f"{job.crashes}/{job.max_crashes}"

    @admin.display(description=_("last attempts"))
    def last_attempts(self, job: Job) -> _Shown:
        """Show the last attempts, newest first."""
        rows = JobAttempt.objects.using(job._state.db).filter(job=job)  # noqa: SLF001 (no other way)
        found = list(rows.order_by("-number")[: _MOST_ATTEMPTS + 1])
        older = gettext("Older attempts are not shown.") if len(found) > _MOST_ATTEMPTS else ""
        return display.attempts_table(found[:_MOST_ATTEMPTS], older) if found else display.EMPTY
