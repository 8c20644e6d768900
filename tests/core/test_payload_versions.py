"""Payload versions: what was enqueued for another release of its handler."""

from __future__ import annotations

import pytest

from django_leasequeue import Fixed, cancel, enqueue, requeue
from django_leasequeue.exceptions import EnqueueError
from django_leasequeue.outcomes import End
from django_leasequeue.registry import registry
from tests.core.arrange import claim_jobs, job, outcomes, run, write

pytestmark = [pytest.mark.usefixtures("connection"), pytest.mark.leaves_reserved]


def test_the_version_is_in_the_row(connection, declare):
    kind = declare("t", version=3)(lambda a: None)
    made = [
        kind.enqueue(1),
        *kind.enqueue_many([{"a": 1}, {"a": 2}]),
        enqueue("t", {"a": 1}, delay=60),
    ]
    assert {job(one.id).payload_version for one in made} == {3}
    run(connection, "INSERT INTO leasequeue_job (job_type) VALUES ('t')")
    assert [held.payload_version for held in claim_jobs(connection, 9)] == [3, 3, 3, 1]
    assert job(enqueue("undeclared").id).payload_version == 1


def test_a_replaced_payload_has_its_own_version(declare):
    declare("t", version=1)(lambda a: None)
    made = enqueue("t", {"a": 1}, key="k", delay=60)
    registry.remove("t")
    declare("t", version=2)(lambda b: None)
    enqueue("t", {"b": 1}, key="k", delay=60, on_conflict="replace")
    assert (job(made.id).payload, job(made.id).payload_version) == ({"b": 1}, 2)


def test_an_older_payload_is_upcast_before_its_handler(declare, finish):
    seen = {}
    declare("t")(lambda name: None)
    enqueue("t", {"name": "Ada Lovelace"})
    registry.remove("t")

    def upcast(payload, from_version):
        first, last = payload["name"].split()
        seen["from"] = from_version
        return {"first": first, "last": last}

    @declare("t", version=3, upcast=upcast, takes_context=True)
    def handler(context, first, last):
        seen.update(first=first, last=last, payload=context.payload)

    assert finish()[0].end is End.COMPLETED
    assert seen == {
        "from": 1,
        "first": "Ada",
        "last": "Lovelace",
        "payload": {"first": "Ada", "last": "Lovelace"},
    }


def test_a_newer_payload_is_not_run(connection, declare, finish):
    """Case D3: a rolling deploy has enqueued what this worker's code is too old for."""
    calls = []
    declare("t", version=1, failed=lambda *args: calls.append(args))(lambda a: calls.append([a]))
    made = enqueue("t", {"a": 1})
    write(connection, made.id, payload_version=2)
    outcome, row = finish()
    assert (outcome.end, row.status, calls) == (End.REJECTED, "dead", [])
    assert row.last_error == "UnknownJobType: Unsupported payload version 2: this worker knows 1"
    assert row.lease_until is None  # no hook to run


def test_an_upcast_that_is_wrong_can_be_mended(connection, declare, finish):
    """Its error is a failed attempt: the next deploy may know better."""
    declare("t", version=2, upcast=lambda payload, _: payload["x"], backoff=Fixed(0))(
        lambda a: None
    )
    made = enqueue("t", {"a": 1})
    write(connection, made.id, payload_version=1)
    outcome, row = finish()
    assert (outcome.end, row.status, row.last_error) == (End.FAILED, "ready", "KeyError")
    registry.remove("t")
    declare("t", version=2, upcast=lambda payload, _: payload)(lambda a: None)
    assert finish()[0].end is End.COMPLETED
    assert outcomes(made.id) == ["failed", "completed"]


def test_the_hook_gets_the_payload_of_its_own_version(connection, declare, finish, buried):
    seen = []

    def handler(b):
        raise ValueError

    declare(
        "t",
        version=2,
        upcast=lambda payload, _: {"b": payload["a"]},
        max_attempts=1,
        failed=lambda context, error: seen.append(context.payload),
    )(handler)
    made = enqueue("t", {"b": 0})
    run(connection, """UPDATE leasequeue_job SET payload = '{"a": 7}', payload_version = 1""")
    finish()
    assert buried(made.id).end is End.COMPLETED
    assert seen == [{"b": 7}]


@pytest.mark.parametrize("known", [None, 2, 3])
def test_a_mended_payload_keeps_a_version_that_is_not_known_here(declare, known):
    declare("t", version=3)(lambda a: None)
    made = enqueue("t", {"a": 1}).id
    cancel(made)
    registry.remove("t")
    if known is not None:
        declare("t", version=known)(lambda a: None)
    if known == 2:
        with pytest.raises(EnqueueError, match="of version 3, and this process knows 2"):
            requeue(made, payload={"a": 2})
        assert (job(made).status, job(made).payload) == ("cancelled", {"a": 1})
    else:
        assert requeue(made, payload={"a": 2}) == [made]
        assert (job(made).payload, job(made).payload_version) == ({"a": 2}, 3)
