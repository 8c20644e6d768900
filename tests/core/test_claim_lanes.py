"""A claim with room for more goes on to the next lanes, each under a token of its own."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from django.db import DatabaseError

from django_leasequeue import enqueue
from django_leasequeue.core import claim as claim_module
from django_leasequeue.core.claim import _EMPTY_LANES
from django_leasequeue.core.lanes import Lanes
from django_leasequeue.core.lease import Claimed, renew
from django_leasequeue.models import Job
from tests.core.arrange import claim_jobs, job, write
from tests.core.interleave import at_statement
from tests.core.refusing import refusing
from tests.faults import REPEAT, Fault, broken
from tests.statements import count_statements

pytestmark = [pytest.mark.usefixtures("connection"), pytest.mark.leaves_reserved]


def ids(jobs: list[Claimed]) -> list[int]:
    return [held.job_id for held in jobs]


def test_lane_by_lane_in_their_order(connection):
    low = [enqueue("t", queue="a").id for _ in range(2)]
    other = [enqueue("t", queue="b", priority=9).id for _ in range(2)]
    high = [enqueue("t", queue="a", priority=1).id for _ in range(2)]
    held = claim_jobs(connection, 9, lanes=Lanes(("a", "b")))
    assert ids(held) == high + low + other
    tokens = [each.lease.token for each in held]
    assert len(set(tokens)) == 3 and tokens[::2] == tokens[1::2]
    assert renew(connection, [each.lease for each in held], 60).lost == ()


def test_no_more_than_wanted(connection):
    made = [enqueue("t", priority=-n).id for n in range(6)]
    lanes = Lanes(("default",))
    assert ids(claim_jobs(connection, 2, ahead=1, lanes=lanes)) == made[:3]
    assert ids(claim_jobs(connection, 0, ahead=2, lanes=lanes)) == made[3:5]
    assert ids(claim_jobs(connection, 9, lanes=lanes)) == made[5:]


@pytest.mark.parametrize("priority", [2, 1], ids=["another lane", "the same lane"])
def test_what_must_not_wait_holds_back_the_lanes_behind_it(connection, priority):
    first = enqueue("t", priority=priority).id
    last_try = enqueue("t", priority=1, max_attempts=1).id
    behind = enqueue("t").id
    lanes = Lanes(("default",))
    assert ids(claim_jobs(connection, 1, ahead=9, lanes=lanes)) == [first]
    assert ids(claim_jobs(connection, 2, ahead=9, lanes=lanes)) == [last_try, behind]


def test_nothing_overtakes_what_a_lane_has_left(connection):
    """The claim's first look at a lane was full of jobs that it ended."""
    high = [enqueue("t", priority=5).id for _ in range(3)]
    low = enqueue("t").id
    write(connection, high[0], attempts=5)
    lanes = Lanes(("default",))
    assert ids(claim_jobs(connection, 2, lanes=lanes)) == high[1:2]
    assert ids(claim_jobs(connection, 2, lanes=lanes)) == [high[2], low]
    assert job(high[0]).status == "dead"


def test_nothing_overtakes_what_lies_behind_a_refused_job(connection):
    high = [enqueue(name, priority=5).id for name in ("t", "poison", "t")]
    low = enqueue("t").id
    lanes = Lanes(("default",))
    with refusing(connection, "status = 'reserved' AND job_type = 'poison'"):
        found = [ids(claim_jobs(connection, 4, lanes=lanes)) for _ in range(4)]
    assert [each for claimed in found for each in claimed] == [high[0], high[2], low]
    assert job(high[1]).status == "dead"


def test_a_full_claim_looks_no_further(connection):
    for priority in (1, 0):
        for _ in range(3):
            enqueue("t", priority=priority)
    lanes = Lanes(("default",))
    claim_jobs(connection, 1, lanes=lanes)
    with count_statements(connection) as statements:
        assert len(claim_jobs(connection, 2, lanes=lanes)) == 2
    assert len(statements) <= 6, statements


def test_lanes_without_jobs_are_looked_into_a_few_times(connection, lane_clock):
    """A job that comes is not to wait for a look at all the lanes that had some before it."""
    for priority in range(3 * _EMPTY_LANES):
        enqueue("t", priority=priority)
    lanes = Lanes(("default",))
    assert len(claim_jobs(connection, 99, lanes=lanes)) == 3 * _EMPTY_LANES
    enqueue("t", priority=3 * _EMPTY_LANES - 1)
    with count_statements(connection) as statements:
        assert len(claim_jobs(connection, 99, lanes=lanes)) == 1
    probes = [sql for sql in statements if "leasequeue:probe" in sql]
    assert len(probes) == 1 + _EMPTY_LANES, probes


def test_jobs_do_not_wait_for_more_when_the_database_is_slow(connection, monkeypatch):
    monkeypatch.setattr(claim_module, "_MORE_SECONDS", -1.0)
    made = [enqueue("t", priority=-n).id for n in range(3)]
    lanes = Lanes(("default",))
    assert [ids(claim_jobs(connection, 9, lanes=lanes)) for _ in made] == [[each] for each in made]


def test_an_error_in_a_later_lane_loses_no_job(connection):
    """What is claimed is returned; the next call raises what was wrong."""
    made = [enqueue("t", queue=name).id for name in ("a", "b")]
    lanes = Lanes(("a", "b"))

    def fail() -> None:
        raise DatabaseError("of no known code")

    with at_statement(connection, "SET status = 'reserved'", fail, nth=2) as hit:
        assert ids(claim_jobs(connection, 9, lanes=lanes)) == made[:1]
    assert hit
    assert [job(each).status for each in made] == ["reserved", "ready"]
    with pytest.raises(DatabaseError, match="of no known code"):
        claim_jobs(connection, 9, lanes=lanes)
    assert ids(claim_jobs(connection, 9, lanes=lanes)) == made[1:]
    assert Job.objects.filter(status="reserved").count() == 2


def test_passing_trouble_in_a_later_lane_is_met_again(connection):
    made = [enqueue("t", queue=name).id for name in ("a", "b")]
    lanes = Lanes(("a", "b"))
    deadlock = REPEAT[connection.vendor][0]
    fault = Fault(deadlock, match=lambda sql: "SET status = 'reserved'" in sql, at=2, times=99)
    with broken(connection, fault):
        assert ids(claim_jobs(connection, 9, lanes=lanes)) == made[:1]
    assert fault.fired
    assert ids(claim_jobs(connection, 9, lanes=lanes)) == made[1:]


@pytest.mark.parametrize("lane", [1, 2], ids=["the first lane", "a later lane"])
def test_what_could_not_be_read_is_given_back(connection, lane):
    """Its claim was committed: nobody would run it, and its lease would cost it an attempt."""
    made = [enqueue("t", queue=name).id for name in ("a", "b")]
    lanes = Lanes(("a", "b"))
    code = REPEAT[connection.vendor][0]
    fault = Fault(code, match=lambda sql: "leasequeue:read" in sql, at=lane, times=99)
    with broken(connection, fault):
        if lane == 1:
            with pytest.raises(DatabaseError):
                claim_jobs(connection, 9, lanes=lanes)
        else:
            assert ids(claim_jobs(connection, 9, lanes=lanes)) == made[:1]
    assert fault.fired
    assert job(made[lane - 1]).status == "reserved"
    found = claim_jobs(connection, 9, lanes=lanes)
    assert ids(found) == made[lane - 1 :]
    assert found[0].lease.token == bytes(job(made[lane - 1]).lease_token)
    again = job(made[lane - 1])
    assert (again.attempts, again.claims, again.crashes) == (1, 2, 0)
    assert claim_jobs(connection, 9, lanes=lanes) == []


def test_jobs_do_not_wait_for_a_lane_of_jobs_that_come_to_nothing(connection, monkeypatch):
    """There may be thousands that are past their time, of which each look ends some."""
    first = enqueue("t", priority=1).id
    used_up = [enqueue("t").id for _ in range(9)]
    for each in used_up:
        write(connection, each, attempts=5)
    moments = iter(range(1000))
    clock = SimpleNamespace(monotonic=lambda: float(next(moments)))
    monkeypatch.setattr(claim_module, "time", clock)
    monkeypatch.setattr(claim_module, "_MORE_SECONDS", 3.5)
    lanes = Lanes(("default",))
    assert ids(claim_jobs(connection, 2, lanes=lanes)) == [first]
    assert 1 <= Job.objects.filter(status="dead").count() < len(used_up)
    assert claim_jobs(connection, 2, lanes=lanes) == []
    assert Job.objects.filter(status="dead").count() == len(used_up)


@pytest.mark.only_on("mariadb", "mysql", "postgres")
def test_what_must_not_wait_is_not_locked_again_and_again(connection, session):
    """While it was, another worker took the lane for empty and went on to lesser jobs."""
    high = [enqueue("t", priority=5, max_attempts=1).id for _ in range(20)]
    low = enqueue("t").id
    lanes, rival = Lanes(("default",)), session()
    assert ids(claim_jobs(connection, 1, ahead=50, lanes=lanes)) == high[:1]
    assert claim_jobs(connection, 0, ahead=50, lanes=lanes) == []
    for turn in range(4):
        found: list[Claimed] = []
        theirs = Lanes(("default",))

        def meanwhile(found=found, theirs=theirs) -> None:
            found += claim_jobs(rival, 1, lanes=theirs)

        with at_statement(connection, "SET status = 'reserved'", meanwhile) as reached:
            mine = claim_jobs(connection, 1, ahead=50, lanes=lanes)
        assert reached
        assert ids([*mine, *found]) == high[1 + 2 * turn : 3 + 2 * turn]
    assert job(low).status == "ready"


def test_a_lane_whose_jobs_must_not_wait_holds_nothing_back_once_it_is_empty(connection):
    high = [enqueue("t", priority=5, max_attempts=1).id for _ in range(2)]
    low = [enqueue("t").id for _ in range(2)]
    lanes = Lanes(("default",))
    assert claim_jobs(connection, 0, ahead=5, lanes=lanes) == []
    assert claim_jobs(connection, 0, ahead=5, lanes=lanes) == []
    assert ids(claim_jobs(connection, 2)) == high  # by another worker
    assert ids(claim_jobs(connection, 0, ahead=5, lanes=lanes)) == low
