"""Names and keys that differ at all are different, on every collation (case E4)."""

from __future__ import annotations

import pytest

from django_leasequeue import enqueue, pause
from django_leasequeue.core.bury import take_burials
from django_leasequeue.core.drain import anything_reserved
from django_leasequeue.core.settle import Ending, settle
from django_leasequeue.models import Job
from django_leasequeue.outcomes import End, Outcome
from tests.core.arrange import claim_jobs

pytestmark = [pytest.mark.usefixtures("connection"), pytest.mark.leaves_reserved]

PAIRS = [
    ("A", "a"),
    ("k", "k "),
    ("é", "e"),
    ("é", "e\u0301"),
    ("😀", "😁"),
    ("ß", "ss"),
    ("x", "x\u200b"),
    ("a_b", "a%b"),
]


@pytest.mark.parametrize(("one", "other"), PAIRS)
@pytest.mark.parametrize("until", ["forever", "finished"])
def test_keys(one, other, until):
    first = enqueue("t", key=one, key_until=until)
    second = enqueue("t", key=other, key_until=until)
    assert second.created
    assert first.id != second.id
    assert enqueue("t", key=one, key_until=until).id == first.id


@pytest.mark.parametrize(("one", "other"), PAIRS)
def test_queues(connection, one, other):
    first, second = enqueue("t", key="k", queue=one), enqueue("t", key="k", queue=other)
    assert second.created
    assert Job.objects.get(queue_name=one) == first
    pause(other)
    assert [job.job_id for job in claim_jobs(connection, 5, queues="*")] == [first.id]
    assert anything_reserved(connection, (one,))
    assert not anything_reserved(connection, (other,))


@pytest.mark.parametrize(("one", "other"), [*PAIRS, ("k ", "k")])
def test_a_named_queue(connection, one, other):
    if one != one.strip():
        pytest.skip("names given to a worker are stripped")
    enqueue("t", queue=other)
    assert claim_jobs(connection, 5, queues=one) == []
    wanted = enqueue("t", queue=one)
    assert [job.job_id for job in claim_jobs(connection, 5, queues=one)] == [wanted.id]


@pytest.mark.parametrize(("one", "other"), PAIRS)
def test_job_types(connection, one, other):
    enqueue(one)
    enqueue(other)
    jobs = claim_jobs(connection, 5, leases={one: 5})
    assert {job.job_type: job.seconds for job in jobs} == {one: 5, other: 60}
    settle(connection, [Ending(job.lease, Outcome(End.REJECTED, bury=True)) for job in jobs])
    taken = take_burials(connection, with_hook=[one], without_hook=[], worker="w", seconds=5)
    assert [job.job_type for job in taken] == [one]
