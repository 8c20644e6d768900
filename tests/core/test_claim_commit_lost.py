"""A claim whose COMMIT answer never came is looked up: what was claimed is run, not lost."""

from __future__ import annotations

from contextlib import ExitStack

import pytest

from django_leasequeue import enqueue
from django_leasequeue.core.lanes import Lanes
from django_leasequeue.core.lease import renew
from tests.core.arrange import claim_jobs, claim_one, job, snapshot
from tests.core.interleave import at_statement
from tests.core.refusing import refusing
from tests.faults import RECONNECT, Fault, broken, holding_job, severs
from tests.waiting import wait_until

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


def claim_when_free(connection):
    """The server notices a lost session, and frees its rows, in its own time."""
    return wait_until(lambda: claim_jobs(connection, 5))


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
        held = claim_when_free(connection)
    assert [(each.job_id, each.number) for each in held] == [(made.id, 1)]


def test_a_commit_that_is_still_under_way(connection, session, lost):
    """The row is locked when it is looked up: it is asked again until it is free."""
    made = enqueue("t")
    other, holding = session(), ExitStack()
    look = "SELECT id, lease_token FROM leasequeue_job"

    def hold() -> None:
        holding.enter_context(holding_job(other, made.id))

    with (
        broken(connection, Fault(lost, match=commit, when="after")),
        at_statement(connection, look, hold),
        at_statement(connection, look, holding.close, nth=2) as looked_again,
    ):
        held = claim_one(connection)
    assert looked_again
    assert held.job_id == made.id


@pytest.mark.parametrize("when", ["before", "after"])
def test_what_came_to_nothing_in_the_same_claim(connection, lost, when):
    expired, good = enqueue("t", expires=0), enqueue("t")
    with broken(connection, Fault(lost, match=commit, when=when)):
        held = claim_jobs(connection, 5)
    held = held or claim_when_free(connection)
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


@pytest.mark.parametrize("when", ["before", "after"])
def test_of_the_end_of_a_row_that_cannot_be_reserved(connection, lost, when):
    """Done or not, the next claim goes on from there."""
    poison, good = enqueue("poison").id, enqueue("t").id
    with refusing(connection, "status = 'reserved' AND job_type = 'poison'"):
        with broken(connection, Fault(lost, match=commit, when=when)) as fault:
            claim_jobs(connection, 1)
        assert fault.fired == 1
        lanes = Lanes(("default",))
        wait_until(
            lambda: (
                claim_jobs(connection, 1, lanes=lanes) is not None
                and [job(poison).status, job(good).status] == ["dead", "reserved"]
            )
        )
