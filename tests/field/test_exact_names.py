"""Names and keys that a collation would take for one another: different jobs, by every claim."""

from __future__ import annotations

import pytest

from django_leasequeue import enqueue, enqueue_many
from django_leasequeue.core.lanes import Lanes
from tests.core.arrange import claim_jobs, outcomes
from tests.field.workers import drain

ALIKE = [
    ("A", "a"),
    ("k", "k "),
    ("é", "e"),
    ("😀", "😁"),
    ("ß", "ss"),
    ("abc", "ab\u200bc"),  # zero-width space
    ("\u00e9", "e\u0301"),  # composed, decomposed
    ("i", "\u0131"),  # dotless
]
IDS = ["case", "trailing space", "accent", "emoji", "sharp s", "zero width", "composed", "dotless"]
alike = pytest.mark.parametrize(("one", "other"), ALIKE, ids=IDS)


def claim_from(connection, queue: str) -> list[int]:
    """Claim everything of exactly this queue."""
    lanes = Lanes((queue,))
    return [claimed.job_id for claimed in claim_jobs(connection, 10, lanes=lanes)]


@alike
@pytest.mark.parametrize("key_until", ["forever", "finished"])
def test_keys(connection, one, other, key_until):
    """E4: different keys are different jobs, one by one and in bulk."""
    first = enqueue("t", key=one, key_until=key_until)
    second = enqueue("t", key=other, key_until=key_until)
    assert (first.created, second.created) == (True, True)
    assert enqueue("t", key=one, key_until=key_until).id == first.id
    options = [{"key": key, "key_until": key_until} for key in (other, one, other)]
    again = enqueue_many([("t", {}, option) for option in options])
    assert [job.id for job in again] == [second.id, first.id, second.id]


@alike
@pytest.mark.leaves_reserved
def test_queues(connection, one, other):
    """E4: a worker of one queue takes nothing of the other, whichever is claimed first."""
    ids = {name: enqueue("t", queue=name, key="k").id for name in (one, other)}
    assert len({*ids.values()}) == 2
    assert claim_from(connection, other) == [ids[other]]
    assert claim_from(connection, other) == []
    assert claim_from(connection, one) == [ids[one]]


@alike
@pytest.mark.leaves_reserved
def test_all_queues(connection, one, other):
    """E4: "*" finds each of them as a queue of its own."""
    ids = {enqueue("t", queue=name).id for name in (one, other)}
    lanes = Lanes(("*",))
    found = [claimed.job_id for _ in range(3) for claimed in claim_jobs(connection, lanes=lanes)]
    assert sorted(found) == sorted(ids)


@alike
def test_job_types(connection, declare, one, other):
    """E4: each runs in its own handler."""
    ran = []
    declare(one)(lambda: ran.append(one))
    declare(other)(lambda: ran.append(other))
    ids = [enqueue(name).id for name in (other, one)]
    drain()
    assert sorted(ran) == sorted([one, other])
    assert [outcomes(job_id) for job_id in ids] == [["completed"], ["completed"]]
