"""A payload that replaces another starts afresh: counters and checkpoint were the old one's."""

from __future__ import annotations

import pytest

from django_leasequeue import enqueue, pause, requeue, reschedule, resume
from django_leasequeue.core.checkpoint import save_checkpoint
from django_leasequeue.core.settle import Ending, settle
from django_leasequeue.outcomes import End, Outcome
from tests.core.arrange import claim_one, job

pytestmark = [pytest.mark.usefixtures("connection"), pytest.mark.leaves_reserved]


def fail_with_checkpoint(connection, end=End.FAILED):
    claimed = claim_one(connection)
    with connection.cursor() as cursor:
        save_checkpoint(connection, cursor, claimed.lease, '{"line":500}', 60)
    settle(connection, [Ending(claimed.lease, Outcome(end))])
    return claimed.job_id


def test_replace_after_failed_attempts(connection):
    made = enqueue("t", {"f": "old"}, key="k", max_attempts=9)
    for _ in range(4):
        fail_with_checkpoint(connection)
    assert (job(made.id).attempts, job(made.id).checkpoint) == (4, {"line": 500})
    enqueue("t", {"f": "new"}, key="k", on_conflict="replace", max_attempts=3)
    fresh = job(made.id)
    assert (fresh.payload, fresh.attempts, fresh.crashes) == ({"f": "new"}, 0, 0)
    assert (fresh.checkpoint, fresh.progress, fresh.last_error) == (None, None, "")
    claimed = claim_one(connection)
    assert (claimed.attempt, claimed.checkpoint) == (1, None)


def test_requeue_with_another_payload(connection):
    enqueue("t", {"f": "old"})
    job_id = fail_with_checkpoint(connection, End.REJECTED)
    assert requeue(job_id, payload={"f": "new"}) == [job_id]
    assert (job(job_id).payload, job(job_id).checkpoint) == ({"f": "new"}, None)


def test_requeue_with_the_same_payload_keeps_the_checkpoint(connection):
    enqueue("t", {"f": "old"})
    job_id = fail_with_checkpoint(connection, End.REJECTED)
    requeue(job_id)
    assert job(job_id).checkpoint == {"line": 500}


@pytest.mark.parametrize("name", ["pause", "reschedule"])
def test_job_types_that_are_named_like_an_operation(connection, declare, name):
    declare(name, key=lambda **payload: 1 / 0)(lambda needed: None)
    made = enqueue("t")
    assert reschedule(made.id, delay=60) == [made.id]
    assert pause("q")
    assert resume("q")
