"""What a declaration says of its jobs, from the enqueue to the attempt."""

from __future__ import annotations

import json

import pytest
from asgiref.sync import async_to_sync

from django_leasequeue import Fixed, enqueue, enqueue_many
from django_leasequeue.codec import digest_key
from django_leasequeue.manifest import declare_jobs
from django_leasequeue.outcomes import End
from django_leasequeue.registry import registry
from django_leasequeue.runtime.charges import limit_of
from tests.core.arrange import claim_jobs, job, run
from tests.unit.payload_models import Line, Order

pytestmark = [pytest.mark.usefixtures("connection"), pytest.mark.leaves_reserved]


# Classes


def test_a_class_handles_with_a_fresh_object_each_time(declare, finish):
    """S2: handle(payload), and nothing of one attempt is left for the next."""
    seen = []

    @declare("class", backoff=Fixed(0))
    class Count:
        def __init__(self):
            self.calls = 0

        def handle(self, context, text):
            self.calls += 1
            seen.append((self.calls, context.attempt, text))
            if context.attempt == 1:
                raise ValueError(text)
            return {"length": len(text)}

    enqueue("class", {"text": "abc"})
    assert finish()[0].end is End.FAILED
    assert finish()[1].result == {"length": 3}
    assert seen == [(1, 1, "abc"), (1, 2, "abc")]


def test_a_coroutine_class(declare, finish):
    @declare("class")
    class Coroutine:
        async def handle(self, text):
            return text.upper()

    enqueue("class", {"text": "abc"})
    assert finish()[1].result == "ABC"


def test_an_init_that_raises_is_a_failed_attempt(declare, finish):
    @declare("class")
    class Broken:
        def __init__(self):
            raise OSError

        def handle(self):
            pass

    enqueue("class")
    outcome, row = finish()
    assert (outcome.end, row.status, row.last_error) == (End.FAILED, "ready", "OSError")


@pytest.mark.parametrize("is_async", [False, True])
def test_failed_runs_once_the_attempts_are_used_up(declare, finish, is_async, buried):
    """S2: failed(payload, e), on an object of its own."""
    seen = []

    class Plain:
        def handle(self, text):
            raise ValueError(text)

        def failed(self, context, error):
            seen.append((context.payload, str(error)))

    class Async(Plain):
        async def failed(self, context, error):
            seen.append((context.payload, str(error)))

    declare("class", max_attempts=1)(Async if is_async else Plain)
    made = enqueue("class", {"text": "abc"})
    assert finish()[0].bury
    assert buried(made.id).end is End.COMPLETED
    assert seen == [({"text": "abc"}, "ValueError")]


# Keys


def test_a_declared_key_makes_one_job_however_it_is_enqueued(declare):
    kind = declare("keyed", key=lambda tenant, month="2042-01": f"{tenant}:{month}")(
        lambda tenant, month="2042-01": None
    )
    first = kind.enqueue("acme")
    again = [
        kind.enqueue(tenant="acme", month="2042-01"),
        async_to_sync(kind.aenqueue)("acme"),
        kind.using(priority=5).enqueue("acme"),
        *kind.enqueue_many([{"tenant": "acme"}]),
        enqueue("keyed", {"tenant": "acme"}),
        *enqueue_many([("keyed", {"tenant": "acme"}, {})]),
    ]
    assert first.created
    assert {(made.id, made.created) for made in again} == {(first.id, False)}
    assert job(first.id).idempotency_key == digest_key("acme:2042-01")
    assert kind.enqueue("globex").created
    assert kind.using(key="mine").enqueue("acme").created


def test_a_declared_key_until_finished(declare, finish):
    kind = declare("keyed", key="nightly", key_until="finished")(lambda: None)
    first = kind.enqueue()
    assert not kind.enqueue().created
    assert job(first.id).live_key == digest_key("nightly")
    finish()
    assert kind.enqueue().created


# What is frozen in the row, and what follows the code


def test_the_row_s_values_win_over_later_code(connection, declare, finish):
    work = {"n": 0}

    def handler():
        work["n"] += 1
        raise ValueError

    declare(
        "t", max_attempts=3, max_crashes=2, queue="q", priority=5, timeout=10, backoff=Fixed(0)
    )(handler)
    made = enqueue("t", timeout=7)
    other = enqueue("t", delay=3600)
    registry.remove("t")
    declare(
        "t", max_attempts=1, max_crashes=1, queue="p", priority=-5, timeout=99, backoff=Fixed(0)
    )(handler)
    row = job(made.id)
    assert (row.max_attempts, row.max_crashes, row.queue_name, row.priority) == (3, 2, "q", 5)
    assert row.timeout == 7
    assert job(other.id).timeout is None
    for _ in range(3):
        finish()
    assert (work["n"], job(made.id).status) == (3, "dead")


def test_a_time_limit_that_an_enqueue_leaves_out_follows_the_code(connection, declare):
    declare("t", timeout=10)(lambda: None)
    enqueue("t")
    enqueue("t", timeout=7)
    registry.remove("t")
    declare("t", timeout=99)(lambda: None)
    assert [limit_of(held) for held in claim_jobs(connection, 2)] == [99, 7]


# Typed payloads


def takes_order(payload: Order) -> dict[str, str]:
    return {"kind": type(payload).__name__, "line": type(payload.lines[0]).__name__}


def test_a_typed_payload_is_built_for_the_handler(declare, finish):
    kind = declare("typed")(takes_order)
    made = kind.enqueue(Order(7, [Line("é", 5)]))
    stored = {"order_id": 7, "lines": [{"article": "é", "price": 5}], "note": None}
    assert job(made.id).payload == stored
    assert finish()[1].result == {"kind": "Order", "line": "Line"}
    (many,) = kind.enqueue_many([Order(8, [Line("a", 5)])])
    assert job(many.id).payload["order_id"] == 8


def test_a_typed_payload_that_another_program_wrote_wrong(connection, declare, finish):
    declare("typed", failed=lambda context, error: None)(takes_order)
    payload = json.dumps({"order_id": "hunter2"})
    run(
        connection, "INSERT INTO leasequeue_job (job_type, payload) VALUES ('typed', %s)", [payload]
    )
    outcome, row = finish()
    assert (outcome.end, row.status, row.lease_until) == (End.REJECTED, "dead", None)
    assert row.last_error == "RejectedJob: Malformed job payload: typed: order_id must be int"


# Declared as data


def test_a_manifest_s_jobs_run(finish, declare):
    """S2: retry and timeout come from the declaration, the handler from its dotted path."""
    name = "tests.unit.manifest_handlers.coroutine"
    declare_jobs([{"name": name, "retry": 5, "queue": "reports", "timeout": 30}], registry)
    made = enqueue(name, {"a": 7})
    row = job(made.id)
    assert (row.queue_name, row.max_attempts) == ("reports", 5)
    assert finish()[1].result == 7
