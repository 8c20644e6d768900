"""What an operator does to schedules: none of it ticks at once or for time that has passed."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from django.db.transaction import atomic

from django_leasequeue import (
    ScheduleError,
    add_schedule,
    disable_schedule,
    edit_schedule,
    enable_schedule,
    list_schedules,
    next_ticks,
    run_schedule,
)
from django_leasequeue.core.operate import cancel
from django_leasequeue.core.ticking import due_schedules, tick
from django_leasequeue.models import Job, Schedule
from django_leasequeue.testing import freeze

pytestmark = pytest.mark.usefixtures("connection")

START = datetime(2026, 5, 1, 12, 0, 7, tzinfo=UTC)
SECRET = "swordfish"


@pytest.fixture
def clock():
    with freeze(START) as clock:
        yield clock


def take(connection):
    return [t.tick_at for number in due_schedules(connection, ()) for t in tick(connection, number)]


def row(name: str = "a") -> Schedule:
    return Schedule.objects.get(name=name)


def test_adding_plans_the_next_tick(clock):
    made = add_schedule("a", "some.type", every=timedelta(minutes=5))
    assert (made.next_tick, made.last_tick, made.every) == (
        START.replace(minute=5, second=0),
        None,
        300,
    )
    assert (row().next_tick, row().payload, row().queue_name) == (made.next_tick, {}, "default")
    assert not row().declared_in_code


def test_what_a_declared_type_says_is_taken(clock, declare):
    declare("declared", queue="reports", priority=3)(lambda n=1: None)
    add_schedule("a", "declared", {"n": 2}, cron="@daily", timezone="Europe/Belgrade")
    assert (row().queue_name, row().priority) == ("reports", 3)
    assert row().next_tick == datetime(2026, 5, 1, 22, tzinfo=UTC)
    with pytest.raises(ScheduleError, match="declared"):
        add_schedule("b", "declared", {"m": 2}, cron="@daily")


@pytest.mark.parametrize(
    "wrong",
    [
        {"cron": "0 0 30 2 *"},
        {},
        {"every": 60, "timezone": "Mars"},
        {"every": 60, "catch_up": "some"},
        {"every": 60, "queue": ""},
        {"every": 60, "priority": 101},
        {"every": 60, "payload": [SECRET]},
        {"every": 60, "payload": {"n": {SECRET}}},
        {"every": 60, "job_type": "x" * 256},
        {"every": 60, "name": ""},
        {"every": 60, "name": "x" * 256},
        {"every": 60, "name": "\0"},
        {"every": 60, "key": "\0"},
        {"every": 60, "key": "x" * 256},
    ],
)
def test_what_is_refused_writes_nothing(wrong):
    given = {"name": "a", "job_type": "some.type", **wrong}
    with pytest.raises(ScheduleError) as caught:
        add_schedule(given.pop("name"), given.pop("job_type"), **given)
    assert SECRET not in str(caught.value)
    assert not Schedule.objects.exists()


def test_a_name_is_taken_once():
    add_schedule("a", "some.type", every=60)
    with pytest.raises(ScheduleError, match="already"):
        add_schedule("a", "other.type", every=60)
    assert row().job_type == "some.type"


def test_a_pause_leaves_out_what_it_misses(connection, clock):
    add_schedule("a", "some.type", every=60, catch_up="all")
    assert (disable_schedule("a"), disable_schedule("a")) == (True, False)
    assert row().next_tick is None
    clock.advance(3600)
    assert (enable_schedule("a"), enable_schedule("a")) == (True, False)
    assert take(connection) == []
    assert row().next_tick == START.replace(hour=13, minute=1, second=0)


@pytest.mark.parametrize(
    "changes",
    [{"every": 30}, {"cron": "* * * * *"}, {"catch_up": "none"}, {"payload": {"n": 1}}, {}],
)
def test_an_edit_never_ticks_at_once(connection, clock, changes):
    add_schedule("a", "some.type", every=60, catch_up="all")
    clock.advance(3600)
    edit_schedule("a", **changes)
    assert take(connection) == []
    assert row().next_tick > clock.now


def test_an_edit_changes_what_it_names(clock):
    add_schedule("a", "some.type", {"n": 1}, every=60, queue="q", priority=3, key="k")
    edit_schedule("a", cron="0 * * * *", timezone="Asia/Kathmandu")
    edit_schedule("a", queue="r")
    changed = row()
    assert (changed.cron, changed.every, changed.timezone) == ("0 * * * *", None, "Asia/Kathmandu")
    assert (changed.payload, changed.queue_name, changed.priority) == ({"n": 1}, "r", 3)
    assert (changed.key, changed.next_tick.minute) == ("k", 15)
    edit_schedule("a", every=60)
    assert (row().cron, row().every) == ("", 60)


def test_an_edit_of_something_else_leaves_the_payload_s_version(clock, declare):
    declare("versioned", version=3, upcast=lambda payload, version: payload)(lambda n: None)
    add_schedule("a", "versioned", {"n": 1}, every=60)
    Schedule.objects.update(payload_version=1)
    edit_schedule("a", priority=5)
    edit_schedule("a", payload={"n": 1})
    assert row().payload_version == 1
    edit_schedule("a", payload={"n": 2})
    assert row().payload_version == 3


def test_editing_where_the_type_is_not_declared_keeps_the_version():
    add_schedule("a", "declared.elsewhere", {"a": 1}, every=60)
    Schedule.objects.update(payload_version=3)
    edit_schedule("a", payload={"a": 2})
    assert (row().payload, row().payload_version) == ({"a": 2}, 3)
    edit_schedule("a", job_type="declared.elsewhere.too")
    assert row().payload_version == 1


def test_an_edit_of_a_disabled_schedule_leaves_it_disabled(clock):
    add_schedule("a", "some.type", every=60, enabled=False)
    edit_schedule("a", every=30)
    assert (row().enabled, row().next_tick) == (False, None)


def test_what_cannot_be_edited(clock):
    add_schedule("a", "some.type", every=60)
    with pytest.raises(ScheduleError, match="bad minute"):
        edit_schedule("a", cron="61 * * * *")
    with pytest.raises(TypeError, match="enabled"):
        edit_schedule("a", enabled=False)
    Schedule.objects.update(declared_in_code=True)
    with pytest.raises(ScheduleError, match="declared in code"):
        edit_schedule("a", every=30)
    assert row().every == 60


@pytest.mark.parametrize("act", [edit_schedule, enable_schedule, disable_schedule, run_schedule])
def test_there_is_none_of_that_name(act):
    with pytest.raises(ScheduleError, match="no schedule named 'a'"):
        act("a")


def test_running_now_is_besides_the_ticks(connection, clock):
    add_schedule("a", "some.type", {"n": 1}, every=60, enabled=False)
    jobs = [run_schedule("a"), run_schedule("a")]
    assert [job.created for job in jobs] == [True, True]
    for job in Job.objects.all():
        assert (job.schedule, job.tick_at, job.payload) == ("a", None, {"n": 1})
    assert (row().last_tick, row().next_tick) == (None, None)


def test_running_now_respects_the_key(clock):
    add_schedule("a", "some.type", every=60, key="k")
    first, second = run_schedule("a"), run_schedule("a")
    assert (first.created, second.created, second.pk) == (True, False, first.pk)


@pytest.mark.parametrize("key", ["", "k"])
def test_running_now_once_for_a_token(connection, clock, key):
    """Also when its job has ended by then, and has given up the schedule's key."""
    add_schedule("a", "some.type", every=60, key=key)
    add_schedule("b", "some.type", every=60)
    first = run_schedule("a", token="t")
    assert run_schedule("a", token="t").pk == first.pk
    cancel(first)
    again = run_schedule("a", token="t")
    assert (again.pk, again.created) == (first.pk, False)
    others = [run_schedule("a", token="u"), run_schedule("b", token="t")]
    assert [job.created for job in others] == [True, True]
    assert Job.objects.count() == 3
    assert run_schedule("a", token="t").pk == (others[0].pk if key else first.pk)  # the live one


def test_a_token_inside_the_callers_transaction(connection, clock):
    add_schedule("a", "some.type", every=60)
    first = run_schedule("a", token="t")
    with atomic():
        again = run_schedule("a", token="t")
        assert (again.pk, again.created) == (first.pk, False)
        assert run_schedule("a", token="u").created


def test_the_next_ticks_are_in_the_zone(clock):
    add_schedule("b", "t", cron="30 2 * * *", timezone="America/New_York")
    add_schedule("a", "t", every=3600, enabled=False)
    hourly, daily = list_schedules()
    assert [f"{tick:%H:%M}" for tick in next_ticks(hourly, 3)] == ["13:00", "14:00", "15:00"]
    clock.move_to(datetime(2026, 3, 7, tzinfo=UTC))
    shown = [f"{tick:%m-%d %H:%M %Z}" for tick in next_ticks(daily)]
    assert shown[:3] == ["03-07 02:30 EST", "03-08 03:00 EDT", "03-09 02:30 EDT"]
    assert len(shown) == 5
    with pytest.raises(ScheduleError):
        next_ticks(Schedule(cron="x"))
