"""What the queue's admin pages share: rows are shown, never edited; the core alone writes them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast
from uuid import UUID

from django.contrib import admin, messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.admin.utils import flatten_fieldsets
from django.contrib.auth import get_permission_codename
from django.db import connections, transaction
from django.db.models import Model, QuerySet
from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern
from django.utils.translation import gettext_lazy as _

from django_leasequeue.admin.outages import answering
from django_leasequeue.conf import get_conf

__all__ = ["OperatorAdmin", "outside_atomic_requests"]

#: So many have what a column of ids cannot hold.
_DIGITS = 19

M = TypeVar("M", bound=Model)
View = TypeVar("View", bound=Callable[..., HttpResponse])

if TYPE_CHECKING:
    from django.contrib.admin import ModelAdmin as _ModelAdmin
else:

    class _ModelAdmin(admin.ModelAdmin, Generic[M]):
        """ModelAdmin takes no type parameter at run time."""


def outside_atomic_requests(view: View) -> View:
    """Return the view, to run in no transaction whatever ATOMIC_REQUESTS say."""
    for alias in connections:
        view = transaction.non_atomic_requests(using=alias)(view)
    return view


class OperatorAdmin(_ModelAdmin[M]):
    """A read-only page on the queue's database; what changes there, changes through actions."""

    show_full_result_count = False
    # Counts beside each choice of each filter would be as many scans.
    show_facets = admin.ShowFacets.NEVER

    @property
    def urls(self) -> list[URLPattern]:
        found = self.get_urls()
        for one in found:
            one.callback = answering(one.callback)
        return found

    # Under ATOMIC_REQUESTS one long transaction would keep workers from every row of an action.
    @outside_atomic_requests
    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        return super().changelist_view(request, extra_context)

    def response_action(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        ticked = request.POST.getlist(ACTION_CHECKBOX_NAME)
        if not all(pk.isdecimal() and len(pk) < _DIGITS for pk in ticked):
            messages.error(request, _("What was ticked are no rows of this list."))
            return None
        return super().response_action(request, *args, **kwargs)

    def get_queryset(self, request: HttpRequest) -> QuerySet[M]:
        return super().get_queryset(request).using(get_conf().DATABASE)

    def get_object(
        self, request: HttpRequest, object_id: str, from_field: str | None = None
    ) -> M | None:
        # Django looks for a field without a name where the URL's `_to_field` is empty.
        return super().get_object(request, object_id, from_field or None)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: M | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: M | None = None) -> bool:
        return False

    def get_readonly_fields(self, request: HttpRequest, obj: M | None = None) -> list[str]:
        # Nor is anything editable in a subclass that permits changes.
        return flatten_fieldsets(self.get_fieldsets(request, obj))

    def may(self, request: HttpRequest, action: str, model: type[Model]) -> bool:
        """Tell whether the user has the app's own permission for `action` on `model`."""
        codename = get_permission_codename(action, model._meta)
        return request.user.has_perm(f"{model._meta.app_label}.{codename}")

    def log(
        self, request: HttpRequest, changed: Iterable[Model], message: str, flag: int = CHANGE
    ) -> None:
        """Leave one LogEntry per changed object, all in one statement."""
        if rows := list(changed):
            user = cast("int | str | UUID", request.user.pk)
            LogEntry.objects.log_actions(user, rows, flag, message)
