"""Finding dead letters: the newest that match, wherever they lie, and never more than a window."""

from __future__ import annotations

from datetime import timedelta

import pytest

from django_leasequeue.core import dead_search
from django_leasequeue.core.clock import UtcNow
from django_leasequeue.core.dead_search import Sought, search
from django_leasequeue.core.dialect import dialect_for
from django_leasequeue.models import Job
from tests.core.arrange import run
from tests.core.bulk import bury
from tests.core.plans import explained
from tests.statements import count_statements

pytestmark = pytest.mark.usefixtures("connection")

A, B, C = "a" * 16, "b" * 16, "c" * 16
HOUR = timedelta(hours=1)
LONG_AGO = "2021-01-01 00:00:00+00:00"


@pytest.fixture
def most(monkeypatch: pytest.MonkeyPatch):
    """Set how many are returned, and how many are looked at."""

    def limit(returned: int, looked_at: int = 100_000) -> None:
        monkeypatch.setattr(dead_search, "MOST_DEAD", returned)
        monkeypatch.setattr(dead_search, "_WINDOW", looked_at)

    return limit


def ids_of(found: dead_search.Found) -> list[int]:
    return [one.id for one in found.letters]


def test_newest_first_and_no_more_than_that(connection, most):
    ids = bury(5, fingerprint=A)
    for number, job_id in enumerate(ids):
        moment = f"2021-01-0{5 - number} 00:00:00+00:00"
        Job.objects.filter(pk=job_id).update(finished_at=moment)
    bury(3, status="done")
    found = search(connection)
    assert (ids_of(found), found.whole) == (ids, True)
    first = found.letters[0]
    assert first.died_at is not None and first.died_at.isoformat()[:10] == "2021-01-05"
    assert (first.job_type, first.queue, first.fingerprint) == ("arranged", "default", A)
    most(4)
    found = search(connection)
    assert (ids_of(found), found.whole) == (ids[:4], False)


def test_those_whose_burial_is_to_come_are_seen(connection):
    (buried,) = bury(1)
    (pending,) = bury(1, lease_until=UtcNow())
    (broken,) = bury(1, finished_at=None)
    found = search(connection)
    assert set(ids_of(found)) == {buried, pending, broken} and found.whole
    assert found.letters[-1].id == broken and found.letters[-1].died_at is None
    assert [one.pending for one in found.letters if one.id == pending] == [True]


def test_those_whose_burial_is_to_come_are_where_their_death_puts_them(connection, most):
    bury(3, finished_at=LONG_AGO)
    (pending,) = bury(1, lease_until=UtcNow() + HOUR)
    (newest,) = bury(1)
    (old_pending,) = bury(1, lease_until=UtcNow() + HOUR, finished_at="2020-01-01 00:00:00+00:00")
    most(2)
    assert ids_of(search(connection)) == [newest, pending]
    most(100)
    assert ids_of(search(connection))[-1] == old_pending


def test_those_without_a_time_hide_no_others(connection, most):
    bury(3, finished_at=None)
    (one,) = bury(1, finished_at=LONG_AGO)
    most(2)
    assert ids_of(search(connection))[0] == one
    assert ids_of(search(connection, Sought(job_type="arranged")))[0] == one


@pytest.mark.parametrize(
    "sought",
    [
        Sought(job_type="old.type"),
        Sought(queue="old"),
        Sought(fingerprint=A),
        Sought(job_type="old.type", queue="old", fingerprint=A),
        Sought(without=(B,)),
        Sought(job_type="old.type", without=(B, C)),
    ],
    ids=str,
)
def test_what_is_named_is_found_behind_any_number_of_others(connection, most, sought):
    ids = bury(2, "old.type", queue_name="old", fingerprint=A, finished_at=LONG_AGO)
    bury(5, "new.type", fingerprint=B)
    most(3)
    found = search(connection, sought)
    assert (ids_of(found), found.whole) == (ids[::-1], True)


def test_a_snoozed_group_hides_no_other(connection, most):
    bury(5, "some.type", fingerprint=A)
    bury(4, "other.type", fingerprint=B)
    awake = bury(3, "some.type", fingerprint=C, finished_at=LONG_AGO)
    bury(1, "other.type", fingerprint=B, lease_until=UtcNow())
    bury(1, "some.type", fingerprint=B, finished_at=None)
    most(4)
    found = search(connection, Sought(without=(A, B)))
    assert (ids_of(found), found.whole, found.left_out) == (awake[::-1], True, 3)
    found = search(connection, Sought(job_type="some.type", without=(A, B)))
    assert (ids_of(found), found.left_out) == (awake[::-1], 2)
    assert search(connection, Sought(queue="none", without=(A, B))).left_out == 0


def test_what_is_looked_at_is_bounded(connection, most):
    ids = bury(3, "some.type", queue_name="q", fingerprint=A, finished_at=LONG_AGO)
    later = bury(4, "other.type", queue_name="q", fingerprint=B)
    pending = bury(6, "other.type", queue_name="q", fingerprint=C, lease_until=UtcNow())
    most(100, 3)
    # Not among the three to die last; a type with three is found wherever they lie.
    assert search(connection, Sought(fingerprint=A)) == ([], False, 0)
    assert ids_of(search(connection, Sought(job_type="some.type"))) == ids[::-1]
    found = search(connection, Sought(job_type="other.type", fingerprint=B))
    # One more than the window: where it ends, others may have died at the same moment.
    assert set(ids_of(found)) <= set(later) and found.letters and not found.whole
    found = search(connection, Sought(queue="q", without=(A,)))
    assert set(ids_of(found)) <= {*later, *pending} and not found.whole
    # The queue has too many, the type does not: the other way round too.
    assert ids_of(search(connection, Sought("q", "some.type"))) == ids[::-1]
    bury(9, "some.type", finished_at=LONG_AGO)
    Job.objects.filter(pk__in=ids).update(queue_name="small")
    assert ids_of(search(connection, Sought("small", "some.type"))) == ids[::-1]


RECOVER, TYPE, CLAIM = (f"leasequeue_job_{name}" for name in ("recover", "type", "claim"))


def test_where_nothing_is_named_nothing_is_measured(connection):
    bury(1)
    with count_statements(connection) as statements:
        assert search(connection, Sought(without=[])).whole
    assert len(statements) == 3


WALKS = [
    (Sought(), RECOVER),
    (Sought(fingerprint=A), RECOVER),
    (Sought(without=(A, B)), RECOVER),
    (Sought(job_type="large", without=(A,)), RECOVER),
    (Sought(job_type="small"), TYPE),
    (Sought(job_type="small", without=(A, B)), TYPE),
    (Sought("small", "small", A), TYPE),
    (Sought("small", without=(A, B)), CLAIM),
    (Sought("small", "large"), CLAIM),
]


def test_each_look_walks_an_index_and_asks_little(connection, most):
    for fingerprint in (A, B):
        bury(150, "large", fingerprint=fingerprint)
        bury(10, "small", queue_name="small", fingerprint=fingerprint)
    bury(30, "large", fingerprint=A, lease_until=UtcNow())
    bury(3000, "large", status="done")
    bury(1000, "small", status="done", queue_name="small")
    if connection.vendor != "sqlite":  # which tells of no reads
        scattered = dialect_for(connection).later.replace("%s", "(-1000000 * id)")
        run(connection, f"UPDATE leasequeue_job SET finished_at = {scattered}")
    if connection.vendor == "postgresql":  # its planner must know how many there are
        run(connection, "ANALYZE leasequeue_job")
    most(25, 50)
    for sought, index in WALKS:
        with explained(connection) as plans, count_statements(connection) as statements:
            search(connection, sought)
        assert len([sql for sql in statements if sql.startswith("/* leasequeue:dead")]) <= 6
        assert plans
        for plan in plans:
            assert not plan.scans, str(plan)
            # No more than the window of each of three stretches, and what is sorted of it.
            assert plan.reads is None or plan.reads <= 3 * 50 + 60, str(plan)
            if "ORDER BY CASE" not in plan.sql and "GROUP BY" not in plan.sql:
                assert not plan.sorts, str(plan)
        assert index in plans[-1].indexes, str(plans[-1])
        if connection.vendor != "sqlite":
            assert plans[-1].indexes - {""} == {index}, str(plans[-1])
