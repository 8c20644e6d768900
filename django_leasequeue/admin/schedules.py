"""The schedules: add, edit, enable, disable, run now, and a look at the ticks to come."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.conf import settings
from django.contrib import admin, messages
from django.contrib.admin.utils import unquote
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.forms import ModelForm
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils.html import format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from django_leasequeue.admin import display
from django_leasequeue.admin.base import OperatorAdmin
from django_leasequeue.admin.pages import url_of
from django_leasequeue.admin.schedule_actions import DELETE, DISABLE, ENABLE, RUN, act_on
from django_leasequeue.admin.schedule_form import ScheduleForm
from django_leasequeue.conf import get_conf
from django_leasequeue.core import schedules
from django_leasequeue.exceptions import ScheduleError
from django_leasequeue.models import Schedule
from django_leasequeue.registry import registry

__all__ = ["ScheduleAdmin"]

_EDITED = ("payload", "queue_name", "priority", "key", "cron", "every", "timezone", "catch_up")


def _may_sign(request: HttpRequest) -> bool:
    """Tell whether jobs of the user's making may be signed: workers sign what a schedule says."""
    return not get_conf().SIGNING_KEYS or request.user.has_perm("leasequeue.sign_job")


def _may_see(request: HttpRequest, schedule: Schedule) -> bool:
    declaration = registry.get(schedule.job_type)
    hides = declaration is not None and declaration.sensitive
    return not hides or request.user.has_perm("leasequeue.view_payload")


@admin.register(Schedule)
class ScheduleAdmin(OperatorAdmin[Schedule]):
    """All writes go through the core; what code declares is shown, and can be paused and run."""

    list_display = ("name", "job_type", "rule", "enabled", "next", "last", "declared_in_code")
    list_filter = ("enabled", "declared_in_code")
    search_fields = ("name", "job_type")
    ordering = ("name",)
    form = ScheduleForm
    #: The last takes the place of Django's own, which does not ask why.
    actions = ("enable", "disable", "run_now", "delete_selected")

    def lookup_allowed(self, lookup: str, value: str, request: HttpRequest | None = None) -> bool:
        """Allow the filters in the URL: by the payload one could guess what is masked in it."""
        return lookup.removesuffix("__exact") in {"id", *self.list_filter}

    def has_add_permission(self, request: HttpRequest) -> bool:
        return self.may(request, "add", Schedule) and _may_sign(request)

    def has_change_permission(self, request: HttpRequest, obj: Schedule | None = None) -> bool:
        """Without a schedule: to pause and run them; to edit one takes what its payload takes."""
        if obj is None:
            return self.may(request, "change", Schedule)
        may_write = not obj.declared_in_code and _may_sign(request) and _may_see(request, obj)
        return self.may(request, "change", Schedule) and may_write

    def has_delete_permission(self, request: HttpRequest, obj: Schedule | None = None) -> bool:
        return self.may(request, "delete", Schedule)

    def get_fields(self, request: HttpRequest, obj: Schedule | None = None) -> list[Any]:
        if obj is None:
            return ["name", "job_type", *_EDITED, "reason"]
        edited = [*_EDITED, "reason"]
        if not self.has_change_permission(request, obj):
            edited = ["payload_text", *_EDITED[1:]]
        return ["name", "job_type", *edited, "enabled", "preview", "last", "declared_in_code"]

    def get_readonly_fields(self, request: HttpRequest, obj: Schedule | None = None) -> list[str]:
        if obj is None:
            return []
        shown = ["name", "enabled", "preview", "last", "declared_in_code"]
        may_edit = self.has_change_permission(request, obj)
        return shown if may_edit else self.get_fields(request, obj)

    def get_changeform_initial_data(self, request: HttpRequest) -> dict[str, Any]:
        return {"timezone": settings.TIME_ZONE, **super().get_changeform_initial_data(request)}

    def changeform_view(
        self,
        request: HttpRequest,
        object_id: str | None = None,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> Any:
        """Say what the core refuses, too, of what has changed since the form was checked."""
        try:
            return super().changeform_view(request, object_id, form_url, extra_context)
        except ScheduleError as error:
            self.message_user(request, str(error), messages.ERROR)
            return HttpResponseRedirect(url_of(self, "schedule_changelist"))

    def save_model(
        self, request: HttpRequest, obj: Schedule, form: ModelForm[Schedule], change: bool
    ) -> None:
        """Write what the form has checked, and tell when it ticks next."""
        values = dict(vars(form)["checked"])
        values["queue"] = values.pop("queue_name")
        del values["payload_version"]  # the core's word
        using = get_conf().DATABASE
        if change:
            saved = schedules.edit_schedule(obj.name, using=using, **values)
        else:
            saved = schedules.add_schedule(obj.name, using=using, **values)
        vars(obj).update(vars(saved))
        ticks = ", ".join(map(_in_zone, schedules.next_ticks(saved, using=using)))
        self.message_user(request, gettext("Next ticks: %s.") % ticks, messages.INFO)

    def construct_change_message(
        self, request: HttpRequest, form: Any, formsets: Any, add: bool = False
    ) -> Any:
        """Return what was changed, and why, as the log keeps it."""
        changed = ", ".join(name for name in form.changed_data if name != "reason")
        return f"{'Added' if add else f'Changed {changed}'}: {form.cleaned_data['reason']}"

    def delete_view(
        self, request: HttpRequest, object_id: str, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Delete one schedule, after the question that the list asks."""
        row = self.get_object(request, unquote(object_id))
        if not self.has_delete_permission(request, row):
            raise PermissionDenied
        if row is None:
            raise Http404(gettext("There is no such schedule."))
        one = self.get_queryset(request).filter(pk=row.pk)
        return act_on(self, request, one, DELETE, url_of(self, "schedule_changelist"))

    @admin.action(permissions=["change"], description=_("Enable selected schedules"))
    def enable(self, request: HttpRequest, queryset: QuerySet[Schedule]) -> HttpResponse:
        """Let the selected schedules tick again, after a question."""
        return act_on(self, request, queryset, ENABLE)

    @admin.action(permissions=["change"], description=_("Disable selected schedules"))
    def disable(self, request: HttpRequest, queryset: QuerySet[Schedule]) -> HttpResponse:
        """Let the selected schedules tick no more, after a question."""
        return act_on(self, request, queryset, DISABLE)

    @admin.action(permissions=["change"], description=_("Run selected schedules now"))
    def run_now(self, request: HttpRequest, queryset: QuerySet[Schedule]) -> HttpResponse:
        """Enqueue the job of each selected schedule, besides its ticks, after a question."""
        return act_on(self, request, queryset, RUN)

    @admin.action(permissions=["delete"], description=_("Delete selected schedules"))
    def delete_selected(self, request: HttpRequest, queryset: QuerySet[Schedule]) -> HttpResponse:
        """Delete the selected schedules, after a question; what they have enqueued stays."""
        return act_on(self, request, queryset, DELETE)

    @admin.display(description=_("ticks"))
    def rule(self, schedule: Schedule) -> str:
        """Show the interval, or the cron expression with its zone."""
        if schedule.every is not None:
            return gettext("every %g s") % schedule.every
        return f"{schedule.cron} ({schedule.timezone})"

    @admin.display(description=_("next tick"), ordering="next_tick")
    def next(self, schedule: Schedule) -> str:
        """Show when it ticks next; nothing while it is disabled."""
        return display.moment(schedule.next_tick)

    @admin.display(description=_("last tick"))
    def last(self, schedule: Schedule) -> str:
        """Show its last tick."""
        return display.moment(schedule.last_tick)

    @admin.display(description=_("payload"))
    def payload_text(self, schedule: Schedule) -> str | SafeString:
        """Show the payload without what its job type declares as sensitive."""
        declaration = registry.get(schedule.job_type)
        data = declaration.masked(schedule.payload) if declaration else schedule.payload
        return display.block(str(data))

    @admin.display(description=_("next ticks, if enabled"))
    def preview(self, schedule: Schedule) -> str | SafeString:
        """Show the next five ticks in the schedule's zone, or what is wrong with it."""
        try:
            ticks = schedules.next_ticks(schedule, using=get_conf().DATABASE)
        except ScheduleError as error:
            return str(error)
        return format_html_join("", "<div>{}</div>", ((_in_zone(tick),) for tick in ticks))


def _in_zone(tick: datetime) -> str:
    return f"{tick:%Y-%m-%d %H:%M:%S %Z}"
