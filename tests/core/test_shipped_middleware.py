"""The middleware that comes with the package, each with a real job."""

from __future__ import annotations

import json
import sys
from types import SimpleNamespace

import pytest
from django.core.cache import caches
from django.core.exceptions import ImproperlyConfigured
from django.utils import timezone, translation

from django_leasequeue import Snooze, enqueue
from django_leasequeue.core.settle import Ending, settle
from django_leasequeue.middleware import OneAtATime, only_one
from django_leasequeue.outcomes import End
from tests.core.arrange import claim_one, job, run, shift
from tests.field.workers import drain

pytestmark = [pytest.mark.usefixtures("connection"), pytest.mark.leaves_reserved]
SHIPPED = "django_leasequeue.middleware."


class OneImport(OneAtATime):
    job_types = ("import",)
    wait = 7


def test_language_and_time_zone(connection, declare, use):
    seen = []
    declare("t")(lambda: seen.append(around_here()))
    use(SHIPPED + "LocaleMiddleware")
    with translation.override("de"), timezone.override("Asia/Tokyo"):
        enqueue("t")
    with translation.override(None), timezone.override(timezone.get_fixed_timezone(90)):
        enqueue("t")
    plain = enqueue("t")
    run(connection, "UPDATE leasequeue_job SET context = %s WHERE id = %s", ["{}", plain.id])
    drain()
    here = around_here()
    assert seen == [("de", "Asia/Tokyo"), (None, here[1]), here]


def around_here():
    return translation.get_language(), timezone.get_current_timezone_name()


def test_one_at_a_time(connection, declare, use, attempt):
    """Seed S2's cache lock: the second waits, with its attempt given back."""
    ran = []

    @declare("import")
    def handler(n):
        ran.append(n)
        if n == 1:
            second = claim_one(connection)
            outcome = attempt(second)
            settle(connection, [Ending(second.lease, outcome)])
            row = job(second.job_id)
            assert (outcome.end, outcome.delay) == (End.SNOOZED, 7)
            assert (row.status, row.attempts) == ("ready", 0)

    use(OneImport)
    enqueue("import", {"n": 1}, priority=1)
    other = enqueue("import", {"n": 2})
    first = claim_one(connection)
    connection.inc_thread_sharing()
    try:
        outcome = attempt(first)
    finally:
        connection.dec_thread_sharing()
    assert outcome.end is End.COMPLETED
    assert ran == [1]
    shift(connection, other.id, "available_at", -1)
    assert attempt(claim_one(connection)).end is End.COMPLETED
    assert ran == [1, 2]


def test_the_lock_of_another_is_left_alone(monkeypatch):
    """It ran out while the block ran, and another has it now."""
    store = caches["default"]
    with only_one("a", timeout=600):
        store.set("leasequeue:one:a", "another")
    with pytest.raises(Snooze), only_one("a"):
        pass
    store.delete("leasequeue:one:a")
    clock = SimpleNamespace(monotonic=iter([0.0, 599.0]).__next__)
    monkeypatch.setattr("django_leasequeue.middleware.one_at_a_time.time", clock)
    with only_one("a", timeout=600):
        pass
    assert store.get("leasequeue:one:a")
    store.clear()


def test_a_lock_is_given_back_after_an_error():
    for _ in range(2):
        with pytest.raises(ZeroDivisionError), only_one("a"):
            raise ZeroDivisionError


def test_the_trace_goes_on(declare, use, finish):
    sdk = pytest.importorskip("opentelemetry.sdk.trace")
    from opentelemetry import baggage, context, trace

    seen = []

    @declare("t")
    def handler():
        seen.append((trace.get_current_span().get_span_context(), baggage.get_baggage("tenant")))

    use(SHIPPED + "OpenTelemetryMiddleware")
    tracer = sdk.TracerProvider(shutdown_on_exit=False).get_tracer("tests")
    token = context.attach(baggage.set_baggage("tenant", "acme"))
    with tracer.start_as_current_span("request") as span:
        made = enqueue("t", {})
    context.detach(token)
    assert "traceparent" in job(made.id).context["otel"]
    assert finish()[1].status == "done"
    (in_job,) = seen
    assert in_job[0].trace_id == span.get_span_context().trace_id
    assert in_job[1] == "acme"
    untraced = enqueue("t", {})
    assert job(untraced.id).context == {}
    assert finish()[1].status == "done"


def test_the_spans_of_attempts(declare, use, finish, monkeypatch):
    sdk = pytest.importorskip("opentelemetry.sdk.trace")
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    exporter = InMemorySpanExporter()
    provider = sdk.TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr("opentelemetry.trace.get_tracer", provider.get_tracer)

    @declare("t")
    def handler(secret):
        if secret == "hunter2":
            raise ValueError(secret)
        raise Snooze(5)

    use(SHIPPED + "OpenTelemetryMiddleware")
    made = enqueue("t", {"secret": "hunter2"})
    finish()
    enqueue("t", {"secret": ""})
    finish()
    created, failed, _created, snoozed = exporter.get_finished_spans()
    assert failed.attributes
    assert created.name == "enqueue t"
    assert dict(created.attributes or {})["messaging.operation.type"] == "create"
    assert failed.parent
    assert created.context
    assert failed.parent.span_id == created.context.span_id
    assert failed.attributes["messaging.operation.type"] == "process"
    assert failed.attributes["messaging.destination.name"] == "default"
    assert failed.attributes["error.type"] == "ValueError"
    assert failed.attributes["messaging.message.id"] == str(made.id)
    assert (failed.name, failed.status.description) == ("run t", "ValueError")
    assert snoozed.status.is_unset
    assert "hunter2" not in failed.to_json()


def test_what_a_handler_reports_to_sentry_names_its_job(declare, use, finish):
    sentry = pytest.importorskip("sentry_sdk")
    seen = []

    @declare("t")
    def handler(secret):
        seen.append(sentry.get_isolation_scope()._tags)

    use(SHIPPED + "SentryMiddleware")
    made = enqueue("t", {"secret": "hunter2"}, queue="q")
    assert finish()[1].status == "done"
    assert seen == [
        {
            "leasequeue.job_type": "t",
            "leasequeue.job_id": str(made.id),
            "leasequeue.queue": "q",
        }
    ]
    assert "hunter2" not in json.dumps(seen)
    assert sentry.get_isolation_scope()._tags == {}


@pytest.mark.parametrize(
    ("name", "module", "says"),
    [
        ("OpenTelemetryMiddleware", "opentelemetry", r"django-leasequeue\[otel\]"),
        ("SentryMiddleware", "sentry_sdk", "sentry-sdk"),
    ],
)
def test_what_is_not_installed(use, monkeypatch, name, module, says):
    monkeypatch.setitem(sys.modules, module, None)
    use(SHIPPED + name)
    with pytest.raises(ImproperlyConfigured, match=says):
        enqueue("t")
