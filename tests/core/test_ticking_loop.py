"""The loop's part of ticking: nobody is kept from a turn, and nothing spins."""

from __future__ import annotations

import pytest

from django_leasequeue import add_schedule, job
from django_leasequeue.core.ticking import BATCH
from django_leasequeue.models import Job, Schedule
from django_leasequeue.registry import registry
from django_leasequeue.runtime import ticking
from django_leasequeue.runtime.ticking import Ticking
from django_leasequeue.testing import freeze

pytestmark = pytest.mark.usefixtures("connection")


@pytest.fixture
def clock(connection):
    with freeze() as stopped:
        yield stopped


def run_pass(loop, connection):
    loop._due = 0.0
    return loop.run_if_due(connection, lambda: False, lambda taken: None)


def test_one_with_a_day_to_catch_up_keeps_no_other_from_its_turn(connection, clock, monkeypatch):
    add_schedule("backlog", "t", every=1, catch_up="all")
    add_schedule("minutely", "t", every=60)
    clock.advance(86_400)
    monkeypatch.setattr(ticking, "_PASS", 0.0)  # a pass is over with its first schedule
    loop = Ticking("w", database="default")
    for _ in range(2):
        run_pass(loop, connection)
    assert {*Job.objects.values_list("schedule", flat=True)} == {"backlog", "minutely"}


@pytest.mark.only_on("mariadb", "mysql", "postgres")
def test_a_row_that_somebody_holds_makes_no_hot_loop(connection, session, clock):
    add_schedule("held", "t", every=60)
    clock.advance(61)
    loop = Ticking("w", database="default")
    with session().cursor() as rival:
        rival.execute("BEGIN")
        rival.execute("SELECT id FROM leasequeue_schedule WHERE name = 'held' FOR UPDATE")
        pauses = []
        for _ in range(10):
            assert not run_pass(loop, connection)
            pauses.append(loop._patience)
        rival.execute("ROLLBACK")
    assert pauses == sorted(pauses)
    assert pauses[-1] == 1.0
    assert run_pass(loop, connection)
    assert loop._patience < 0.1


def test_declared_schedules_tick_in_the_queue_s_own_database_alone(connection, clock):
    @job("sweep", every=60)
    def sweep():
        pass

    try:
        run_pass(Ticking("w", database="another"), connection)
        assert not Schedule.objects.exists()
        run_pass(Ticking("w", database="default"), connection)
        assert Schedule.objects.get().name == "sweep"
    finally:
        registry.remove("sweep")


def test_a_draining_worker_has_taken_all_that_was_due(connection, clock):
    add_schedule("backlog", "t", every=1, catch_up="all")
    clock.advance(25)
    loop = Ticking("w", database="default", once=True)
    passes = 0
    while not loop.over:
        run_pass(loop, connection)
        passes += 1
    assert passes > 1
    assert Job.objects.count() == 25
    clock.advance(10)
    assert not loop.run_if_due(connection, lambda: False, lambda taken: None)


def test_a_draining_worker_plans_a_hundred_rows_and_takes_what_is_behind_them(connection, clock):
    for number in range(BATCH + 1):
        Schedule.objects.create(name=f"plain sql {number}", job_type="t", every=86_400)
    add_schedule("due", "t", every=60)
    clock.advance(60)
    loop = Ticking("w", database="default", once=True)
    while not loop.over:
        run_pass(loop, connection)
    assert [*Job.objects.values_list("schedule", flat=True)] == ["due"]
    assert not Schedule.objects.filter(next_tick=None).exists()


@pytest.mark.only_on("mariadb", "mysql", "postgres")
def test_a_draining_worker_leaves_a_tick_to_the_rival_that_is_at_it(connection, session, clock):
    add_schedule("held", "t", every=60)
    clock.advance(61)
    loop = Ticking("w", database="default", once=True)
    with session().cursor() as rival:
        rival.execute("BEGIN")
        rival.execute("SELECT id FROM leasequeue_schedule WHERE name = 'held' FOR UPDATE")
        for _ in range(2):
            assert not loop.over
            run_pass(loop, connection)
        rival.execute("ROLLBACK")
    assert loop.over


def test_an_operator_s_schedule_of_a_declared_name_is_told_of(connection, clock, caplog):
    @job("sweep", every=60)
    def sweep():
        pass

    add_schedule("sweep", "other.type", every=90)
    try:
        loop = Ticking("w", database="default")
        for _ in range(2):
            run_pass(loop, connection)
    finally:
        registry.remove("sweep")
    told = [record.fields for record in caplog.records if record.msg == "schedule_not_declared"]
    assert told == [{"worker": "w", "schedule": "sweep"}]
