"""Names, keys and payloads that try to be something else are values, and found as they are."""

from __future__ import annotations

import json

import pytest

from django_leasequeue import EnqueueError, cancel, enqueue, pause, requeue, resume
from django_leasequeue.models import Job, Queue
from tests.core.arrange import claim_jobs, history, job
from tests.field.workers import drain

pytestmark = pytest.mark.usefixtures("connection")
NAME = 64


def test_each_is_a_value_and_nothing_else(connection, declare, hostile):
    """The table is there afterwards, with one job, which ran with what was sent."""
    got = []
    declare(hostile)(lambda **payload: got.append(payload))
    payload = {hostile: hostile, "nested": [{"deep": hostile}]}
    made = enqueue(hostile, payload, queue=hostile[:NAME], key=hostile)
    again = enqueue(hostile, payload, queue=hostile[:NAME], key=hostile)
    assert (again.pk, again.created) == (made.pk, False)
    bystander = enqueue("bystander", queue="bystander", delay=3600)
    row = job(made.id)
    assert (row.job_type, row.queue_name, row.payload) == (hostile, hostile[:NAME], payload)
    drain()
    assert (job(made.id).status, got) == ("done", [payload])
    assert Job.objects.count() == 2
    assert job(bystander.id).status == "ready"


def test_operators_act_on_that_one(connection, hostile):
    queue = hostile[:NAME]
    made = enqueue("t", queue=queue)
    bystander = enqueue("t", queue="bystander")
    pause(queue, reason=hostile, by=hostile)
    assert Queue.objects.get(name=queue).pause_reason == hostile
    assert [held.job_id for held in claim_jobs(connection, 5)] == [bystander.id]
    resume(queue)
    assert cancel(made.id) == [made.id]
    assert requeue(made.id) == [made.id]
    assert cancel([made.id, bystander.id]) == [made.id, bystander.id]


@pytest.mark.parametrize("place", ["queue", "key"])
def test_what_looks_the_same_is_not(place):
    """Neither composed and decomposed text, nor a Cyrillic letter, nor what has no width."""
    looks = ["\u00e9", "e\u0301", "a", "\u0430", "a\u200b", "\u202ea"]
    for text in looks:
        assert enqueue("t", **{"queue": "q", "key": "k", place: text}).created
    assert Job.objects.count() == len(looks)


@pytest.mark.parametrize("bad", ["\ud800", "a\udfffb", "nul\x00"])
@pytest.mark.parametrize("place", ["type", "queue", "key", "payload", "payload key"])
def test_what_no_database_stores_is_refused_before_anything_is_written(place, bad):
    options = {"type": "t", "queue": "q", "key": "k", "payload": "v", "payload key": "n"}
    options[place] = bad
    if place == "key" and "\x00" in bad:
        assert enqueue("t", key=bad).created  # its digest is stored
        return
    with pytest.raises(EnqueueError) as caught:
        enqueue(
            options["type"],
            {options["payload key"]: options["payload"]},
            queue=options["queue"],
            key=options["key"],
        )
    assert bad not in str(caught.value)
    assert str(caught.value).isprintable()
    assert not Job.objects.exists()


def test_a_refusal_does_not_repeat_what_it_refuses(hostile):
    """What it says goes to logs: the names of arguments, and no value of a payload."""
    for payload in ({"n": float("nan"), "text": hostile}, {hostile: object()}, {"n": 10**400}):
        with pytest.raises(EnqueueError) as caught:
            enqueue("t", payload)
        assert hostile not in str(caught.value)
    assert not Job.objects.exists()


def test_an_error_that_quotes_is_stored_without_its_text(connection, declare, hostile):
    @declare("fails", max_attempts=1)
    def fails(text):
        raise ValueError(text)

    made = enqueue("fails", {"text": hostile + "-marker"})
    drain()
    row = job(made.id)
    (attempt,) = history(made.id)
    stored = [row.last_error, attempt.error_class, attempt.error_text, *attempt.frames]
    assert row.status == "dead"
    assert not [text for text in stored if "marker" in text]


def test_a_result_and_a_reason_are_values_too(connection, declare, hostile):
    declare("returns")(lambda: {"text": hostile, hostile: [hostile]})
    made = enqueue("returns")
    drain()
    assert json.loads(json.dumps(job(made.id).result)) == {"text": hostile, hostile: [hostile]}
