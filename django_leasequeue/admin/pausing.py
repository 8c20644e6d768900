"""A queue put on hold or let run again, and the entry that says who did it and why."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest

from django_leasequeue.admin.base import OperatorAdmin
from django_leasequeue.admin.changing import in_one
from django_leasequeue.conf import get_conf
from django_leasequeue.core import operate
from django_leasequeue.models import Queue

__all__ = ["pause_queue", "resume_queue"]


def pause_queue(page: OperatorAdmin[Any], request: HttpRequest, name: str, reason: str) -> bool:
    """Put a queue on hold; False when it was already. Raises EnqueueError for what is no name."""
    by, using = request.user.get_username(), get_conf().DATABASE

    def work() -> bool:
        changed = operate.pause(name, by=by, reason=reason, using=using)
        if changed:
            _log(page, request, name, f"Paused: {reason}")
        return changed

    return in_one(work)


def resume_queue(page: OperatorAdmin[Any], request: HttpRequest, name: str, reason: str) -> bool:
    """Let a queue run again; False when it was not paused."""

    def work() -> bool:
        changed = operate.resume(name, using=get_conf().DATABASE)
        if changed:
            _log(page, request, name, f"Resumed: {reason}")
        return changed

    return in_one(work)


def _log(page: OperatorAdmin[Any], request: HttpRequest, name: str, message: str) -> None:
    page.log(request, Queue.objects.using(get_conf().DATABASE).filter(name=name), message)
