"""Jobs about an object: a field for the pages of a project's own models.

The mixin asks by key or id, for which there are indexes; it never looks into payloads.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from django.contrib import admin
from django.db.models import Q
from django.http import HttpRequest
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from django_leasequeue.admin import display
from django_leasequeue.admin.standing import address
from django_leasequeue.codec import digest_key
from django_leasequeue.conf import get_conf
from django_leasequeue.core.clock import UtcNow
from django_leasequeue.models import Job

__all__ = ["JobsAboutMixin"]

_MOST = 20
#: Ids that are looked up, the largest; some of them may be pruned by now.
_MOST_IDS = 500
#: MariaDB makes a table of a list of a thousand, and scans that.
_LOOK = 500

if TYPE_CHECKING:
    _Base = admin.ModelAdmin[Any]
else:
    _Base = object


class JobsAboutMixin(_Base):
    """Shows "Jobs" on the page of an object, to users who may see jobs; put it first.

    Override `job_keys`, `job_ids`, or both. At most 20 jobs are shown, the newest.
    """

    def job_keys(self, obj: Any) -> Iterable[str | None]:
        """Return the keys that jobs about `obj` were enqueued with; "" and None are none."""
        return ()

    def job_ids(self, obj: Any) -> Iterable[int | None]:
        """Return the ids of jobs about `obj`, if the project keeps them; None is none."""
        return ()

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        """Return the page's own fields of this kind, and the jobs."""
        return [*super().get_readonly_fields(request, obj), "jobs_about"]

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        """Return the page's own fields: the jobs have a part of their own."""
        return [one for one in super().get_fields(request, obj) if one != "jobs_about"]

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        """Return the page's own parts, and the jobs for who may see them."""
        fieldsets = list(super().get_fieldsets(request, obj))
        if obj is not None and request.user.has_perm("leasequeue.view_job"):
            fieldsets.append((_("Jobs"), {"fields": ["jobs_about"]}))
        return fieldsets

    @admin.display(description=_("jobs about this"))
    def jobs_about(self, obj: Any) -> str | SafeString:
        """Show the jobs about an object with their status, newest first."""
        digests = sorted({digest_key(key) for key in self.job_keys(obj) if key})
        ids = sorted({pk for pk in self.job_ids(obj) if pk is not None}, reverse=True)
        using = get_conf().DATABASE
        newest = sorted(_ids_of(digests, using) | set(ids[:_MOST_IDS]), reverse=True)
        rows = Job.objects.using(using).filter(pk__in=newest[:_MOST_IDS]).annotate(db_now=UtcNow())
        columns = ("job_type", "status", "attempts", "available_at", "lease_until", "created_at")
        found = list(rows.only(*columns).order_by("-pk")[: _MOST + 1])
        if not found:
            return display.EMPTY
        more = gettext("Older jobs are not shown.") if len(found) > _MOST else ""
        lines = format_html_join("", "<li>{}</li>", ([self._line(job)] for job in found[:_MOST]))
        return format_html("<ul>{}</ul>{}", lines, more)

    def _line(self, job: Job) -> SafeString:
        status = display.status_words(job, vars(job)["db_now"])
        url = address(self.admin_site.name, "job_change", job.pk)
        name = format_html('<a href="{}">{}</a>', url, job) if url else str(job)
        return format_html("{}: {}, {}", name, status, display.moment(job.created_at))


def _ids_of(digests: Sequence[str], using: str) -> set[int]:
    """Return the ids of the jobs with these keys: one index, one statement, for each column."""
    found: set[int] = set()
    jobs = Job.objects.using(using).order_by()
    for first in range(0, len(digests), _LOOK):
        some = digests[first : first + _LOOK]
        for column in ("idempotency_key", "live_key"):
            rows = jobs.filter(Q((f"{column}__in", some)))
            found.update(rows.values_list("pk", flat=True))
    return found
