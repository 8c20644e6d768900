"""Drain: what a worker that is to end when all is done still waits for."""

from __future__ import annotations

import pytest

from django_leasequeue import cancel, enqueue
from django_leasequeue.core.drain import anything_reserved, waiting_retries
from django_leasequeue.core.settle import Ending, settle
from django_leasequeue.outcomes import End, Outcome
from tests.core.arrange import claim_one, expire, running, shift
from tests.statements import count_statements

pytestmark = [pytest.mark.usefixtures("connection"), pytest.mark.leaves_reserved]


def test_reserved_in_its_own_queues(connection):
    enqueue("t", queue="a")
    assert not anything_reserved(connection, ("*",))
    (held,) = running(connection, queue="b")
    assert anything_reserved(connection, ("*",))
    assert anything_reserved(connection, ("a", "b"))
    assert not anything_reserved(connection, ("a", "c"))
    expire(connection, held.job_id)
    assert anything_reserved(connection, ("b",))  # it will be recovered, and runs again


def test_retries_that_are_due_soon(connection):
    soon, late, done, cancelled = (held.job_id for held in failed(connection, 5, 3600, 5, 5))
    settle_again(connection, done)
    cancel(cancelled)
    assert waiting_retries(connection, [soon, late, done, cancelled], 60) == {soon}
    assert waiting_retries(connection, {late}, 7200) == {late}
    assert waiting_retries(connection, [soon], 0) == set()


def test_nothing_to_ask(connection):
    with count_statements(connection) as statements:
        assert waiting_retries(connection, [], 60) == set()
    assert statements == []


def failed(connection, *delays):
    jobs = running(connection, len(delays))
    settle(
        connection,
        [
            Ending(held.lease, Outcome(End.FAILED, delay=delay))
            for held, delay in zip(jobs, delays, strict=True)
        ],
    )
    return jobs


def settle_again(connection, job_id):
    shift(connection, job_id, "available_at", -1)
    settle(connection, [Ending(claim_one(connection).lease, Outcome(End.COMPLETED))])
