"""OpenTelemetry: the trace of whoever enqueued the job goes on in the worker."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.core.exceptions import ImproperlyConfigured

from django_leasequeue.exceptions import Skip, Snooze
from django_leasequeue.middleware.chain import NewJob

__all__ = ["OpenTelemetryMiddleware"]


class OpenTelemetryMiddleware:
    """Keeps the propagators' headers (W3C `traceparent`, …) under "otel" in the job's context.

    An enqueue is a producer span, each attempt a consumer span below it, with the attributes of
    the semantic conventions for messaging and the job's type, id and attempt; never its payload,
    nor an exception's message. Needs the extra `otel`.
    """

    def __init__(self) -> None:
        try:
            from opentelemetry import context, propagate, trace
        except ImportError as error:
            raise ImproperlyConfigured(
                "OpenTelemetryMiddleware needs OpenTelemetry: install django-leasequeue[otel]."
            ) from error
        self._context = context
        self._propagate = propagate
        self._trace = trace
        self._tracer = trace.get_tracer("django_leasequeue")

    def on_enqueue(self, job: NewJob) -> None:
        """Note the trace of this enqueue: the current one, or one that begins here."""
        headers: dict[str, str] = {}
        with self._tracer.start_as_current_span(
            f"enqueue {job.job_type}",
            kind=self._trace.SpanKind.PRODUCER,
            attributes=_about(job, "create", "enqueue"),
        ):
            self._propagate.inject(headers)
        if headers:
            job.context["otel"] = headers

    def around(self, context: Any, call: Callable[[], Any]) -> Any:
        """Run the attempt in a span of the job's trace, or of a new one."""
        return self._spanned("run", context, call)

    def around_failed(self, context: Any, call: Callable[[], Any]) -> Any:
        """Run the hook in a span of the job's trace, or of a new one."""
        return self._spanned("bury", context, call)

    def _spanned(self, what: str, context: Any, call: Callable[[], Any]) -> Any:
        headers = context.context.get("otel")
        parent = self._propagate.extract(headers if isinstance(headers, dict) else {})
        with self._tracer.start_as_current_span(
            f"{what} {context.job_type}",
            context=parent,
            kind=self._trace.SpanKind.CONSUMER,
            attributes={
                **_about(context, "process", what),
                "messaging.message.id": str(context.job_id),
                "leasequeue.attempt": context.attempt,
            },
            record_exception=False,  # its message may hold a payload's values
            set_status_on_exception=False,
        ) as span:
            # The whole of what was sent, baggage too, and not the span's context alone.
            whole = self._trace.set_span_in_context(span, parent)
            token = self._context.attach(whole)
            try:
                return call()
            except (Skip, Snooze):
                raise
            except BaseException as error:
                span.set_status(self._trace.StatusCode.ERROR, type(error).__qualname__)
                span.set_attribute("error.type", type(error).__qualname__)
                raise
            finally:
                self._context.detach(token)


def _about(job: Any, kind: str, name: str) -> dict[str, str | int]:
    return {
        "messaging.system": "leasequeue",
        "messaging.operation.type": kind,
        "messaging.operation.name": name,
        "messaging.destination.name": job.queue,
        "leasequeue.job_type": job.job_type,
    }
