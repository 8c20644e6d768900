"""The language and the time zone of whoever enqueued the job, active again where it runs."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

from django.utils import timezone, translation

from django_leasequeue.middleware.chain import NewJob

__all__ = ["LocaleMiddleware"]


class LocaleMiddleware:
    """Keeps the active language and time zone under "locale" in the job's context.

    A time zone without a name in the IANA database (a fixed offset) is not kept.
    """

    def on_enqueue(self, job: NewJob) -> None:
        """Note what is active."""
        zone = getattr(timezone.get_current_timezone(), "key", None)
        job.context["locale"] = {"language": translation.get_language(), "time_zone": zone}

    def around(self, context: Any, call: Callable[[], Any]) -> Any:
        """Activate it while the handler runs; a job without it runs as the settings say."""
        locale = context.context.get("locale")
        if not isinstance(locale, dict):
            return call()
        with ExitStack() as stack:
            stack.enter_context(translation.override(locale.get("language")))
            if zone := locale.get("time_zone"):
                stack.enter_context(timezone.override(zone))
            return call()

    around_failed = around
