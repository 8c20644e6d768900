"""`updated_at`: written by each of the queue's own statements, and by no server behind its back."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest

from django_leasequeue import cancel, enqueue, requeue, reschedule
from django_leasequeue.core.lease import Claimed, renew
from django_leasequeue.core.recover import recover_batch
from django_leasequeue.core.settle import Ending, settle
from django_leasequeue.outcomes import End, Outcome
from tests.core.arrange import claim_one, expire, job, shift, write

pytestmark = pytest.mark.usefixtures("connection")

HOUR = 3600


def test_each_write_of_the_queue_stamps_it(connection):
    """A life of a job, an hour after each of its writes."""
    job_id = enqueue("arranged", {"n": 0}).id
    claims: list[Claimed] = []

    def end(how: End) -> None:
        settle(connection, [Ending(claims[-1].lease, Outcome(how))])

    def recover() -> None:
        expire(connection, job_id)
        recover_batch(connection)

    life: list[tuple[str, Callable[[], object], str]] = [
        ("rescheduled", lambda: reschedule(job_id), "ready"),
        ("claimed", lambda: claims.append(claim_one(connection)), "reserved"),
        ("renewed", lambda: renew(connection, [claims[-1].lease], 60), "reserved"),
        ("failed", lambda: end(End.FAILED), "ready"),
        ("claimed again", lambda: claims.append(claim_one(connection)), "reserved"),
        ("recovered", recover, "ready"),
        ("cancelled", lambda: cancel(job_id), "cancelled"),
        ("requeued", lambda: requeue(job_id), "ready"),
        ("claimed at last", lambda: claims.append(claim_one(connection)), "reserved"),
        ("completed", lambda: end(End.COMPLETED), "done"),
    ]
    for what, act, status in life:
        shift(connection, job_id, "updated_at", -HOUR)
        before = job(job_id).updated_at
        act()
        row = job(job_id)
        assert row.status == status, what
        moved = row.updated_at - before
        assert timedelta(minutes=59) < moved < timedelta(minutes=61), what


def test_the_server_by_itself_stamps_nothing(connection):
    """S1's ON UPDATE: two of the four servers have it, in the time zone of whoever writes."""
    job_id = enqueue("arranged", {"n": 0}).id
    shift(connection, job_id, "updated_at", -HOUR)
    before = job(job_id).updated_at
    write(connection, job_id, priority=7)
    assert (job(job_id).priority, job(job_id).updated_at) == (7, before)
