"""requeue(payload=…): the dead letter's payload is mended, checked and signed like a new one."""

from __future__ import annotations

import pytest

from django_leasequeue import EnqueueError, enqueue, requeue
from django_leasequeue.core.settle import Ending, settle
from django_leasequeue.outcomes import End, Outcome
from django_leasequeue.signing import verify
from tests.core.arrange import claim_one, job, running, snapshot, write

pytestmark = [pytest.mark.usefixtures("connection"), pytest.mark.leaves_reserved]


def dead(connection, **options):
    (held,) = running(connection, **options)
    settle(connection, [Ending(held.lease, Outcome(End.REJECTED))])
    return held.job_id


def test_it_replaces_the_payload(connection, declare, attempt):
    seen = []

    @declare("arranged")
    def handler(n):
        seen.append(n)

    job_id = dead(connection)
    assert requeue(job_id, payload={"n": "é😀"}) == [job_id]
    assert job(job_id).payload == {"n": "é😀"}
    attempt(claim_one(connection))
    assert seen == ["é😀"]


@pytest.mark.parametrize("payload", [{"m": 1}, {"n": float("nan")}, {"n": "\0"}, [1], {}])
def test_a_payload_that_could_not_be_enqueued(connection, declare, payload):
    declare("arranged")(lambda n: None)
    job_id = dead(connection)
    before = snapshot(connection)
    with pytest.raises(EnqueueError):
        requeue(job_id, payload=payload)
    assert snapshot(connection) == before


def test_it_has_the_version_of_this_code(connection, declare):
    declare("arranged", version=3, upcast=lambda payload, version: payload)(lambda n: None)
    job_id = dead(connection)
    write(connection, job_id, payload_version=1)
    assert requeue(job_id, payload={"n": 1}) == [job_id]
    assert job(job_id).payload_version == 3


@pytest.mark.parametrize("options", [{}, {"key": "k"}, {"key": "k", "key_until": "finished"}])
def test_it_is_signed_anew(connection, settings, options):
    settings.LEASEQUEUE = {"SIGNING_KEYS": ["a key of sixteen characters"]}
    job_id = dead(connection, max_attempts=7, **options)
    assert verify(job(job_id))
    assert requeue(job_id, payload={"n": 2}) == [job_id]
    assert verify(job(job_id))
    assert job(job_id).payload == {"n": 2}


def test_it_is_for_one_job(connection):
    first, second = dead(connection), dead(connection)
    with pytest.raises(TypeError):
        requeue([first, second], payload={})
    assert requeue([first], payload={"n": 1}) == [first]
    assert requeue(10**9, payload={}) == []


def test_a_job_that_is_not_dead_keeps_its_payload(connection):
    ready = enqueue("arranged", {"n": 1})
    assert requeue(ready.id, payload={"n": 2}) == []
    assert job(ready.id).payload == {"n": 1}


def test_a_key_that_is_held_keeps_the_payload_too(connection):
    job_id = dead(connection, key="k", key_until="finished")
    enqueue("arranged", key="k", key_until="finished", delay=60)
    assert requeue(job_id, payload={"n": 2}) == []
    assert job(job_id).payload == {"n": 0}
