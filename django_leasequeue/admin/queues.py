"""The queues that an operator has put on hold once: who, why, since when; pause and resume."""

from __future__ import annotations

from collections.abc import Callable

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext

from django_leasequeue.admin import display
from django_leasequeue.admin.base import OperatorAdmin
from django_leasequeue.core import operate
from django_leasequeue.models import Queue

__all__ = ["QueueAdmin"]


@admin.register(Queue)
class QueueAdmin(OperatorAdmin[Queue]):
    """A queue has a row once it was paused; the first time, the job list's action does it."""

    list_display = ("name", "running", "since", "paused_by", "pause_reason")
    search_fields = ("name",)
    ordering = ("name",)
    actions = ("pause_queues", "resume_queues")
    fields = ("name", "running", "since", "paused_by", "pause_reason")

    def has_pause_permission(self, request: HttpRequest) -> bool:
        """Tell whether the user may pause and resume queues."""
        return self.may(request, "pause", Queue)

    @admin.action(permissions=["pause"], description=_("Pause selected queues"))
    def pause_queues(self, request: HttpRequest, queryset: QuerySet[Queue]) -> None:
        """Put the selected queues on hold."""
        by = request.user.get_username()

        def pause(queue: Queue) -> bool:
            return operate.pause(queue.name, by=by, using=queryset.db)

        count = self._each(request, queryset, pause, "Paused")
        done = ngettext("%d queue was paused.", "%d queues were paused.", count) % count
        self.message_user(request, done, messages.SUCCESS if count else messages.WARNING)

    @admin.action(permissions=["pause"], description=_("Resume selected queues"))
    def resume_queues(self, request: HttpRequest, queryset: QuerySet[Queue]) -> None:
        """Let the selected queues run again."""

        def resume(queue: Queue) -> bool:
            return operate.resume(queue.name, using=queryset.db)

        count = self._each(request, queryset, resume, "Resumed")
        done = ngettext("%d queue was resumed.", "%d queues were resumed.", count) % count
        self.message_user(request, done, messages.SUCCESS if count else messages.WARNING)

    def _each(
        self,
        request: HttpRequest,
        queryset: QuerySet[Queue],
        operation: Callable[[Queue], bool],
        message: str,
    ) -> int:
        changed = [queue for queue in queryset if operation(queue)]
        self.log(request, changed, message)
        return len(changed)

    @admin.display(description=_("runs"), boolean=True)
    def running(self, queue: Queue) -> bool:
        """Show whether workers claim from the queue."""
        return queue.paused_at is None

    @admin.display(description=_("paused at"))
    def since(self, queue: Queue) -> str:
        """Show when the queue was put on hold."""
        return display.moment(queue.paused_at)
