"""A claim whose COMMIT answer never came is looked up: what was claimed is run, not left to lapse."""

from __future__ import annotations

import pytest

from django_leasequeue import enqueue
from django_leasequeue.core.lanes import Lanes
from django_leasequeue.core.lease import renew
from tests.core.arrange import claim_jobs, claim_one, job, snapshot
from tests.core.interleave import at_statement
from tests.faults import RECONNECT, Fault, broken, holding_job, severs

pytestmark = [
    pytest.mark.usefixtures("connection"),
    pytest.mark.leaves_reserved,
    pytest.mark.only_on("mariadb", "mysql", "postgres"),
]


@pytest.fixture
def lost(connection):
    """The code of an answer that is lost with its session."""
    return next(code for code in RECONNECT[connection.vendor] if severs(code))


def commit(sql: str) -> bool:
    return sql == "COMMIT"


def test_applied(connection, lost):
    ids = [enqueue("t").id for _ in range(3)]
    with broken(connection, Fault(lost, match=commit, when="after")) as fault:
        held = claim_jobs(connection, 2)
    assert fault.fired == 1
    assert [each.job_id for each in held] == ids[:2]
    assert [job(each).status for each in ids] == ["reserved", "reserved", "ready"]
    assert renew(connection, [each.lease for each in held], 60).lost == ()
    assert {job(each.job_id).attempts for each in held} == {1}


def test_not_applied(connection, lost):
    made = enqueue("t")
    before = snapshot(connection)
    with broken(connection, Fault(lost, match=commit)) as fault:
        held = claim_jobs(connection, 2)
    assert fault.fired == 1
    if not held:
        assert snapshot(connection) == before
        held = claim_jobs(connection, 2)
    assert [(each.job_id, each.number) for each in held] == [(made.id, 1)]


def test_a_commit_that_is_still_under_way(connection, session, lost):
    """The row is locked when it is looked up: it is asked again until it is free."""
    made = enqueue("t")
    other = session()
    tries = []

    def look(sql: str) -> bool:
        tries.append(sql)
        return False

    with broken(connection, Fault(lost, match=commit, when="after")):
        with holding_after(connection, other, made.id):
            held = claim_one(connection)
    assert held.job_id == made.id


def holding_after(connection, other, job_id):
    """Lock the job's row from its lost COMMIT to the second look at it."""
    from contextlib import ExitStack

    stack = ExitStack()
    holding = ExitStack()
    looks = "SELECT id, lease_token FROM leasequeue_job"

    def hold() -> None:
        holding.enter_context(holding_job(other, job_id))

    stack.enter_context(at_statement(connection, looks, hold))
    stack.enter_context(at_statement(connection, looks, holding.close, nth=2))
    return stack


@pytest.mark.parametrize("when", ["before", "after"])
def test_what_came_to_nothing_in_the_same_claim(connection, lost, when):
    expired, good = enqueue("t", expires=0), enqueue("t")
    with broken(connection, Fault(lost, match=commit, when=when)):
        held = claim_jobs(connection, 5)
    held = held or claim_jobs(connection, 5)
    assert [each.job_id for each in held] == [good.id]
    assert job(expired.id).status == "cancelled"
    assert job(good.id).claims == 1


def test_the_lane_goes_on_afterwards(connection, lost):
    lanes = Lanes(("default",))
    ids = [enqueue("t").id for _ in range(4)]
    found = []
    with broken(connection, Fault(lost, match=commit, when="after", at=2)):
        for _ in range(4):
            found += [each.job_id for each in claim_jobs(connection, 1, lanes=lanes)]
    assert found == ids
