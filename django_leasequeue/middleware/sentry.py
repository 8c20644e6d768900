"""Sentry: whatever a handler reports is tagged with its job."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.core.exceptions import ImproperlyConfigured

__all__ = ["SentryMiddleware"]


class SentryMiddleware:
    """Runs each attempt in a Sentry scope of its own, tagged with the job's type, id and queue.

    It reports nothing by itself and never sends the payload. Needs `sentry-sdk`.
    """

    def __init__(self) -> None:
        try:
            import sentry_sdk
        except ImportError as error:
            raise ImproperlyConfigured(
                "SentryMiddleware needs Sentry: install sentry-sdk, 2 or later."
            ) from error
        self._isolation_scope = sentry_sdk.isolation_scope

    def around(self, context: Any, call: Callable[[], Any]) -> Any:
        """Run the attempt, or the hook, in its scope."""
        with self._isolation_scope() as scope:
            scope.set_tag("leasequeue.job_type", context.job_type)
            scope.set_tag("leasequeue.job_id", str(context.job_id))
            scope.set_tag("leasequeue.queue", context.queue)
            scope.set_transaction_name(context.job_type, source="task")
            return call()

    around_failed = around
