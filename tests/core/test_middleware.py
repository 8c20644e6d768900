"""Middleware: its context travels with the job, and its chain runs where handlers run."""

from __future__ import annotations

import contextvars

import pytest
from django.core.checks import run_checks
from django.core.exceptions import ImproperlyConfigured

from django_leasequeue import (
    EnqueueError,
    JobResult,
    JobTimeout,
    Reject,
    Skip,
    Snooze,
    Worker,
    enqueue,
    enqueue_many,
)
from django_leasequeue.core.sealing import MAX_CONTEXT_BYTES
from django_leasequeue.middleware.chain import NewJob, get_chain
from django_leasequeue.models import Job
from django_leasequeue.outcomes import End
from tests.core.arrange import job, run
from tests.field.workers import drain

pytestmark = [pytest.mark.usefixtures("connection"), pytest.mark.leaves_reserved]
TENANT = contextvars.ContextVar("TENANT", default="nobody")
EVENTS: list[object] = []
SHIPPED = "django_leasequeue.middleware."


class Tenant:
    """Seed S2's essential module: the tenant of the request is the tenant of the job."""

    def on_enqueue(self, job):
        job.context["tenant"] = TENANT.get()

    def around(self, context, call):
        TENANT.set(context.context.get("tenant", "nobody"))
        return call()

    around_failed = around


class Outer:
    def on_enqueue(self, job):
        EVENTS.append(("enqueue outer", job.job_type, job.queue, dict(job.payload)))

    def around(self, context, call):
        EVENTS.append("outer")
        try:
            return call()
        finally:
            EVENTS.append("outer ends")


class Inner:
    def around(self, context, call):
        EVENTS.append("inner")
        return {"seen": call()}


class Broken:
    def on_enqueue(self, job):
        raise PermissionError("no tenant")

    def around(self, context, call):
        raise ZeroDivisionError


class Deciding:
    """Ends attempts as their payload says, before the handler."""

    def around(self, context, call):
        if context.payload.get("late"):
            call()
        raise {"skip": Skip("s"), "snooze": Snooze(9, "z"), "reject": Reject("r")}[
            context.payload["end"]
        ]


class Careless:
    context: object = None

    def on_enqueue(self, job):
        job.context.update(Careless.context)


class Silent:
    def around(self, context, call):
        return JobResult.skipped("not today")


class Asynchronous:
    async def around(self, context, call):
        return call()


class Empty:
    pass


class Unbuildable:
    def __init__(self):
        raise RuntimeError("secret")

    def around(self, context, call): ...


@pytest.fixture(autouse=True)
def _events():
    EVENTS.clear()


def test_essential_modules_in_jobs(declare, use):
    """Seed S2: a job without its tenant would be silently wrong; the hook has it as well."""
    seen: list[object] = []

    @declare("t", takes_context=True, failed=lambda context, error: seen.append(TENANT.get()))
    def handler(context, n):
        seen.append((TENANT.get(), context.context))
        if n:
            raise Reject("no")

    use(Tenant)
    TENANT.set("acme")
    try:
        enqueue("t", {"n": 0})
        enqueue_many([("t", {"n": 0}, {})])
        handler.enqueue(1)
    finally:
        TENANT.set("nobody")
    drain()
    assert seen == [*[("acme", {"tenant": "acme"})] * 3, "acme"]


def test_nothing_is_left_in_the_next_job(declare, use):
    seen = []
    declare("t")(lambda: seen.append(TENANT.get()))
    use(Tenant)
    token = TENANT.set("acme")
    enqueue("t")
    TENANT.reset(token)
    drain()
    use()
    enqueue("t")
    drain()
    assert seen == ["acme", "nobody"]


def test_the_order(declare, use, finish):
    @declare("t")
    def handler(n):
        EVENTS.append("handler")
        return n

    use(Outer, Inner)
    enqueue("t", {"n": 1}, queue="q")
    _outcome, row = finish()
    assert EVENTS == [
        ("enqueue outer", "t", "q", {"n": 1}),
        "outer",
        "inner",
        "handler",
        "outer ends",
    ]
    assert row.result == {"seen": 1}


@pytest.mark.parametrize("kind", ["coroutine", "complete", "atomic", "skipped"])
def test_kinds_of_handlers(declare, use, finish, kind):
    """A result that is committed already is the handler's; any other is what `around` returns."""
    if kind == "coroutine":

        @declare("t")
        async def coroutine():
            return 1

    elif kind == "complete":

        @declare("t", takes_context=True)
        def completing(context):
            with context.complete({"mine": 1}):
                pass

    elif kind == "atomic":

        @declare("t", atomic=True)
        def atomic():
            return {"mine": 1}

    else:

        @declare("t", atomic=True)
        def skipping():
            return JobResult.skipped("no")

    use(Outer, Inner)
    enqueue("t")
    outcome, row = finish()
    assert EVENTS[-1] == "outer ends"
    assert row.status == "done"
    expected = {"coroutine": {"seen": 1}, "complete": {"mine": 1}, "atomic": {"mine": 1}}
    assert row.result == expected.get(kind)
    assert outcome.end is (End.SKIPPED if kind == "skipped" else End.COMPLETED)


def test_around_without_a_call(declare, use, finish):
    declare("t")(lambda: EVENTS.append("handler"))
    use(Silent)
    enqueue("t")
    outcome, row = finish()
    assert (outcome.end, row.status, EVENTS) == (End.SKIPPED, "done", [])


@pytest.mark.parametrize(
    ("end", "status"), [("skip", "done"), ("snooze", "ready"), ("reject", "dead")]
)
def test_around_may_end_the_attempt(declare, use, finish, end, status):
    declare("t")(lambda **payload: EVENTS.append("handler"))
    use(Deciding)
    enqueue("t", {"end": end})
    assert finish()[1].status == status
    assert EVENTS == []


def test_around_cannot_undo_what_is_committed(declare, use, finish):
    @declare("t", atomic=True)
    def handler(**payload): ...

    use(Deciding)
    enqueue("t", {"end": "reject", "late": True})
    assert finish()[1].status == "done"


def test_an_error_after_a_committed_skip_leaves_it_a_skip(declare, use, finish):
    @declare("t", atomic=True)
    def handler(**payload):
        return JobResult.skipped("no")

    use(Deciding)
    enqueue("t", {"end": "reject", "late": True})
    outcome, row = finish()
    assert (outcome.end, outcome.settled, row.status) == (End.SKIPPED, True, "done")


def test_around_that_raises_is_a_failed_attempt(declare, use, finish):
    declare("t")(lambda: EVENTS.append("handler"))
    enqueue("t")
    use(Broken)
    outcome, row = finish()
    assert (outcome.end, row.status, row.attempts) == (End.FAILED, "ready", 1)
    assert row.last_error == "ZeroDivisionError"
    assert EVENTS == []


def test_an_interrupt_passes_through(declare, use, finish):
    @declare("t")
    def handler():
        raise JobTimeout

    use(Outer, Tenant)
    enqueue("t")
    assert finish()[0].end is End.TIMED_OUT
    assert EVENTS[-1] == "outer ends"


@pytest.mark.parametrize("many", [False, True])
def test_on_enqueue_that_raises(use, many):
    """Its own exception, and nothing is written."""
    use(Broken)
    with pytest.raises(PermissionError, match="no tenant"):
        enqueue_many([("t", {}, {})]) if many else enqueue("t")
    assert not Job.objects.exists()


@pytest.mark.parametrize(
    ("context", "problem"),
    [
        ({"a": {1}}, "set"),
        ({"a": float("nan")}, "NaN"),
        ({1: 2}, "key"),
        ({"a": "\0"}, "NUL"),
        ({"a": "x" * MAX_CONTEXT_BYTES}, "65536"),
    ],
)
def test_a_context_that_cannot_be_stored(use, monkeypatch, context, problem):
    monkeypatch.setattr(Careless, "context", context)
    use(Careless)
    with pytest.raises(EnqueueError, match=f"^t: the middleware's context.*{problem}"):
        enqueue("t")
    assert not Job.objects.exists()


def test_the_context_of_a_replaced_job(use):
    use(Tenant)
    made = enqueue("t", key="k")
    token = TENANT.set("acme")
    enqueue("t", key="k", on_conflict="replace")
    TENANT.reset(token)
    assert job(made.id).context == {"tenant": "acme"}


def test_a_payload_is_for_reading():
    new = NewJob("t", "q", '{"a":[1]}')
    with pytest.raises(TypeError):
        new.payload["a"] = 2  # type: ignore[index]
    for name in ("job_type", "queue", "payload"):
        with pytest.raises(AttributeError):
            setattr(new, name, "x")
    assert repr(new) == "<NewJob t in q>"


def test_a_context_that_another_language_wrote_wrong(connection, declare, use, finish):
    declare("t")(lambda: EVENTS.append("handler"))
    use(Tenant)
    made = enqueue("t")
    run(connection, "UPDATE leasequeue_job SET context = %s WHERE id = %s", ["[]", made.id])
    _outcome, row = finish()
    assert row.last_error == "RejectedJob: Malformed job context: not a JSON object"
    assert (row.status, EVENTS) == ("dead", [])


def test_the_chain_is_built_once(use):
    use(Outer)
    assert get_chain() is get_chain()
    before = get_chain()
    use(Inner)
    assert get_chain() is not before


@pytest.mark.parametrize(
    ("path", "problem"),
    [
        ("nowhere.Middleware", "nowhere"),
        (f"{__name__}.Absent", "Absent"),
        (f"{__name__}.SHIPPED", "no class"),
        (f"{__name__}.Empty", "none of the methods"),
        (f"{__name__}.Asynchronous", "plain functions"),
        (f"{__name__}.Unbuildable", "RuntimeError"),
    ],
)
def test_the_system_check(use, path, problem):
    """leasequeue.E003, so that a worker does not start with it."""
    use(path)
    (error,) = [one for one in run_checks(tags=["leasequeue"]) if one.id == "leasequeue.E003"]
    assert problem in error.msg
    assert "secret" not in error.msg
    with pytest.raises(ImproperlyConfigured, match=problem):
        enqueue("t")
    with pytest.raises(ImproperlyConfigured, match=problem):
        Worker()


def test_good_middleware_has_no_complaint(use):
    use(Outer, SHIPPED + "LocaleMiddleware")
    assert [one for one in run_checks(tags=["leasequeue"]) if one.id == "leasequeue.E003"] == []
