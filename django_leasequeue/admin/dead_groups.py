"""The dead letters: in groups, into a group, and from there back to work or out of the way."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from django.contrib import admin, messages
from django.contrib.admin.models import LogEntry
from django.contrib.admin.options import get_content_type_for_model
from django.core.exceptions import PermissionDenied
from django.core.paginator import Paginator
from django.db import connections
from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_POST

from django_leasequeue.admin.bulk_start import BulkStart
from django_leasequeue.admin.changing import in_one
from django_leasequeue.admin.dead_forms import NoteForm, SnoozeForm
from django_leasequeue.admin.display import ago, moment, shortened
from django_leasequeue.admin.groups import HOURS, Group, Look, Wanted, describe
from django_leasequeue.admin.pages import address_of, page, url_of
from django_leasequeue.admin.sparkline import sparkline
from django_leasequeue.admin.wanted import query_of, wanted_of
from django_leasequeue.conf import get_conf
from django_leasequeue.core.clock import read_now
from django_leasequeue.core.dead_letters import annotate
from django_leasequeue.core.dead_search import MOST_DEAD
from django_leasequeue.models import DeadGroup, Job

__all__ = ["DeadGroupAdmin"]

_GROUPS_A_PAGE = 50
_JOBS_A_PAGE = 100
_MOST_ENTRIES = 20


@admin.register(DeadGroup)
class DeadGroupAdmin(BulkStart):
    """Dead letters are grouped here; who may see jobs may see them."""

    def has_view_permission(self, request: HttpRequest, obj: DeadGroup | None = None) -> bool:
        return self.may(request, "view", Job)

    def get_urls(self) -> list[URLPattern]:
        def view(address: str, function: Any, name: str) -> URLPattern:
            return address_of(self, address, function, name)

        return [
            view("", self.changelist_view, "changelist"),
            view("group/", self.group_view, "group"),
            view("group/note/", require_POST(self.note_view), "note"),
            view("group/snooze/", require_POST(self.snooze_view), "snooze"),
            view("<str:operation>/confirm/", self.confirm_view, "confirm"),
            view("<str:operation>/selected/", require_POST(self.selected_view), "selected"),
        ]

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Show the groups of what matches the URL's queue and type."""
        self._check_view(request)
        wanted = wanted_of(request.GET)
        using = get_conf().DATABASE
        look = Look.at(connections[using], wanted)
        groups, sort = look.groups, {}
        if request.GET.get("sort") == "last":
            groups, sort = sorted(groups, key=_last_seen, reverse=True), {"sort": "last"}
        shown = Paginator(groups, _GROUPS_A_PAGE).get_page(request.GET.get("p"))
        describe(shown, using)
        context = {
            "look": look,
            "most": MOST_DEAD,
            "wanted": wanted,
            "query": query_of(wanted),
            "page_query": query_of(wanted, **sort),
            "by_last": bool(sort),
            "other_order": query_of(wanted, **({} if sort else {"sort": "last"})),
            "other_sleep": query_of(wanted._replace(snoozed=not wanted.snoozed), **sort),
            "shown": shown,
            "rows": [self._row(group, wanted, look) for group in shown],
            **self._permissions(request),
        }
        return page(self, request, "dead_letters.html", _("Dead letters"), context)

    def group_view(self, request: HttpRequest) -> HttpResponse:
        """Show one group's jobs, its error, its note, and what can be done to it."""
        self._check_view(request)
        wanted = wanted_of(request.GET)
        using = get_conf().DATABASE
        look = Look.at(connections[using], wanted)
        group = next(iter(look.groups), None) or Group(
            wanted.job_type or "", wanted.fingerprint or ""
        )
        if group.letters and not wanted.is_one_group:
            # What is shown, counted and requeued is one group: of several, the largest.
            wanted = wanted._replace(job_type=group.job_type, fingerprint=group.fingerprint)
            if len(look.groups) > 1 or not look.whole:
                return self._to_group(wanted)
        jobs = Paginator(group.letters, _JOBS_A_PAGE).get_page(request.GET.get("p"))
        if group.letters:
            describe([group], using)
        context = {
            "look": look,
            "group": group,
            "jobs": jobs,
            "rows": [(one, moment(one.died_at), ago(one.died_at, look.now)) for one in jobs],
            "shown_at": look.now.isoformat(),
            "first": _first(group, look),
            "last": ago(group.last_seen, look.now),
            "snoozed_until": moment(group.snoozed_until) if group.snoozed_until else "",
            "wanted": wanted,
            "query": query_of(wanted),
            "chart": _chart(group),
            "entries": _entries(group),
            "note_form": NoteForm(initial={"note": group.note}),
            "snooze_form": SnoozeForm(initial={"hours": 24}),
            **self._permissions(request),
        }
        title = group.job_type or gettext("Dead letters")
        return page(self, request, "dead_group.html", title, context)

    def note_view(self, request: HttpRequest) -> HttpResponse:
        """Keep a note about a group."""
        wanted, fingerprint = self._annotated(request)
        form = NoteForm(request.POST)
        if "note" in request.POST and form.is_valid():
            note = form.cleaned_data["note"]

            def write() -> None:
                row = annotate(self._connection(), fingerprint, note=note)
                self.log(request, [row], f"Note: {note}"[:500])

            in_one(write)
            messages.success(request, _("The note was saved."))
        else:
            messages.error(request, _("There is no note, or it is too long."))
        return self._to_group(wanted)

    def snooze_view(self, request: HttpRequest) -> HttpResponse:
        """Keep a group out of the list for some hours, or show it again."""
        wanted, fingerprint = self._annotated(request)
        form = SnoozeForm(request.POST)
        if not form.is_valid():
            messages.error(request, _("Give hours, from 0 on, and a reason."))
            return self._to_group(wanted)
        hours, reason = form.cleaned_data["hours"], form.cleaned_data["reason"]
        until = read_now(self._connection()) + timedelta(hours=hours) if hours else None

        def write() -> None:
            row = annotate(self._connection(), fingerprint, snoozed_until=until)
            self.log(request, [row], f"Snoozed for {hours} hours: {reason}")

        in_one(write)
        told = _("The group is snoozed.") if hours else _("The group is shown again.")
        messages.success(request, told)
        return self._to_group(wanted)

    def _annotated(self, request: HttpRequest) -> tuple[Wanted, str]:
        """Return the group that the URL names, to somebody who may annotate it."""
        self._check_view(request)
        if not self.may(request, "change", DeadGroup):
            raise PermissionDenied
        wanted = wanted_of(request.GET)
        if not wanted.fingerprint:
            raise PermissionDenied
        return wanted, wanted.fingerprint

    def _row(self, group: Group, wanted: Wanted, look: Look) -> dict[str, Any]:
        """Return what a line of the list shows."""
        one = Wanted(wanted.queue, group.job_type, group.fingerprint)
        return {
            "group": group,
            "url": f"{url_of(self, 'deadgroup_group')}?{query_of(one)}",
            "error": shortened(group.error) or gettext("no error was recorded"),
            "chart": _chart(group),
            "first": _first(group, look),
            "last": ago(group.last_seen, look.now),
            "snoozed_until": moment(group.snoozed_until) if group.snoozed_until else "",
        }


def _entries(group: Group) -> Sequence[LogEntry]:
    """Return who has snoozed a group, and why, and its notes: the last of these, newest first."""
    if group.noted_in is None:
        return []
    kind = get_content_type_for_model(DeadGroup)
    entries = LogEntry.objects.filter(content_type=kind, object_id=str(group.noted_in))
    return list(entries.select_related("user").order_by("-pk")[:_MOST_ENTRIES])


def _first(group: Group, look: Look) -> str:
    """Return when the first of a group died, as far as it was looked at."""
    first = ago(group.first_seen, look.now)
    return first if look.whole else gettext("%s, or before") % first


def _last_seen(group: Group) -> float:
    return group.last_seen.timestamp() if group.last_seen else 0.0


def _chart(group: Group) -> str:
    day = gettext("%(count)d deaths in the last %(hours)d hours")
    return sparkline(group.hours, day % {"count": sum(group.hours), "hours": HOURS})
