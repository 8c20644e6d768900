"""The loop's part of ticking: nobody is kept from a turn, and nothing spins."""

from __future__ import annotations

import pytest

from django_leasequeue import add_schedule, job
from django_leasequeue.codec import digest_key
from django_leasequeue.core.periodic import Row
from django_leasequeue.core.ticking import BATCH
from django_leasequeue.exceptions import ScheduleError
from django_leasequeue.grid import Rule
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


def run_pass(loop, connection, on_ticked=lambda taken: None):
    loop._due = 0.0
    return loop.run_if_due(connection, lambda: False, on_ticked)


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


def test_a_row_that_cannot_tick_here_is_told_of_once_a_minute(connection, clock, monkeypatch):
    """A host without that zone: another worker ticks on time, and the others are not held up."""
    add_schedule("zoned", "t", cron="* * * * *", timezone="Europe/Belgrade")
    add_schedule("plain", "t", every=60)
    clock.advance(60)
    here, there = Ticking("here", database="default"), Ticking("there", database="default")
    told = []
    with monkeypatch.context() as patch:
        patch.setattr(Row, "rule", property(without_zones))
        for _ in range(3):
            run_pass(here, connection, told.extend)
    assert [one.schedule for one in told if one.error] == ["zoned"]
    assert {*Job.objects.values_list("schedule", flat=True)} == {"plain"}
    run_pass(there, connection)
    assert {*Job.objects.values_list("schedule", flat=True)} == {"plain", "zoned"}


def without_zones(row):
    if row.timezone != "UTC":
        raise ScheduleError("no such zone here")
    return Rule.of(cron=row.cron, every=row.every, timezone=row.timezone)


@pytest.mark.only_on("mariadb", "mysql", "postgres")
def test_a_key_that_an_open_transaction_holds_is_awaited_elsewhere(connection, session, clock):
    add_schedule("keyed", "t", every=60, key="one")
    add_schedule("plain", "t", every=60)
    clock.advance(60)
    rival = session()
    with rival.cursor() as cursor:
        cursor.execute("BEGIN")
        key = digest_key("schedule one")
        cursor.execute(
            "INSERT INTO leasequeue_job (queue_name, job_type, payload, idempotency_key, live_key)"
            " VALUES ('default', 't', '{}', %s, %s)",
            ["f" * 64, key],
        )
        limits = {"postgresql": "lock_timeout = '100ms'"}
        setting = limits.get(connection.vendor, "innodb_lock_wait_timeout = 1")
        with connection.cursor() as own:
            own.execute(f"SET {setting}")
        loop = Ticking("w", database="default")
        for _ in range(2):
            run_pass(loop, connection)
        assert {*Job.objects.values_list("schedule", flat=True)} == {"plain"}
        cursor.execute("ROLLBACK")
    connection.close()
    loop._later.clear()
    run_pass(loop, connection)
    assert {*Job.objects.values_list("schedule", flat=True)} == {"plain", "keyed"}
