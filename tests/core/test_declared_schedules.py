"""Schedules declared in code: what is refused, and what a worker's start makes of them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from django.core.exceptions import ImproperlyConfigured

from django_leasequeue import add_schedule, disable_schedule, enable_schedule
from django_leasequeue.core.declared import sync_declared
from django_leasequeue.core.ticking import due_schedules, tick
from django_leasequeue.grid import Rule
from django_leasequeue.manifest import declare_jobs
from django_leasequeue.models import Job, Schedule
from django_leasequeue.registry import Declaration, Registry
from django_leasequeue.testing import freeze
from tests.core.arrange import run
from tests.faults import Fault, broken, codes_for

pytestmark = pytest.mark.usefixtures("connection")

START = datetime(2026, 5, 1, 12, 0, 7, tzinfo=UTC)


@pytest.fixture
def clock():
    with freeze(START) as clock:
        yield clock


def sweep(n=1):
    """Nothing to do."""


def kind(**options) -> Declaration:
    return Declaration(sweep, "sweep", **options)


def row() -> Schedule:
    return Schedule.objects.get(name="sweep")


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"every": 0}, "every is from 1 s"),
        ({"cron": "0 0 30 2 *"}, "bad day-of-month"),
        ({"cron": "@daily", "every": 60}, "either cron or every"),
        ({"cron": "@daily", "timezone": "Mars"}, "no time zone 'Mars'"),
        ({"cron": "@daily", "catch_up": "some"}, "catch_up is one of"),
        ({"timezone": "UTC"}, "need every or cron"),
        ({"catch_up": "all"}, "need every or cron"),
        ({"every": 60, "key": "k"}, "key_until='finished'"),
    ],
)
def test_what_is_refused_at_registration(options, says):
    with pytest.raises(ImproperlyConfigured, match=says):
        Registry().add(kind(**options))


def test_each_parameter_needs_a_default():
    def needs(n):
        """Nothing to do."""

    with pytest.raises(ImproperlyConfigured, match="each parameter needs a default"):
        Registry().add(Declaration(needs, "needs", every=60))


def test_the_zone_is_the_project_s(settings):
    settings.TIME_ZONE = "Asia/Kathmandu"
    assert str(kind(cron="@daily").rule) == "0 0 * * * (Asia/Kathmandu)"
    assert str(kind(cron="@daily", timezone="UTC").rule) == "0 0 * * * (UTC)"
    assert kind(every=60).rule == Rule("", 60.0, "UTC")
    assert kind().rule is None


def test_entries_of_the_manifest():
    known = Registry()
    entry = {"name": "a", "handler": f"{__name__}.sweep", "cron": "@daily", "timezone": "UTC"}
    declare_jobs(
        [entry, {**entry, "name": "b", "cron": None, "every": 60, "timezone": None}], known
    )
    assert [str(kind.rule) for kind in known] == ["0 0 * * * (UTC)", "every 60 s"]


def test_a_new_one_is_inserted_and_ticks_next_on_its_grid(connection, clock):
    options = {"queue": "q", "priority": 3, "key": "k", "key_until": "finished"}
    declared = [kind(every=timedelta(minutes=1), catch_up="all", **options)]
    assert sync_declared(connection, declared).changed == ["sweep"]
    assert sync_declared(connection, declared).changed == []
    made = row()
    assert (made.declared_in_code, made.enabled, made.job_type) == (True, True, "sweep")
    assert (made.queue_name, made.priority, made.key, made.catch_up) == ("q", 3, "k", "all")
    assert (made.every, made.payload, made.last_tick) == (60, {}, None)
    clock.advance(60)
    (number,) = due_schedules(connection, {"sweep"})
    assert len(tick(connection, number)) == 1
    assert Job.objects.get().queue_name == "q"


def test_an_operator_s_pause_stays(connection, clock):
    sync_declared(connection, [kind(every=60)])
    disable_schedule("sweep")
    assert sync_declared(connection, [kind(every=60)]).changed == []
    assert sync_declared(connection, [kind(every=30, queue="q")]).changed == ["sweep"]
    assert (row().enabled, row().every, row().queue_name) == (False, 30, "q")
    clock.advance(3600)
    assert due_schedules(connection, {"sweep"}) == []
    enable_schedule("sweep")
    assert due_schedules(connection, {"sweep"}) == []


@pytest.mark.parametrize("changed", [{"cron": "* * * * *"}, {"every": 90}])
def test_another_rule_never_ticks_at_once(connection, clock, changed):
    sync_declared(connection, [kind(every=60, catch_up="all")])
    clock.advance(3600)
    sync_declared(connection, [kind(**changed)])
    assert due_schedules(connection, {"sweep"}) == []
    assert row().next_tick > clock.now


def test_a_start_alone_loses_no_missed_tick(connection, clock):
    sync_declared(connection, [kind(every=60)])
    clock.advance(3600)
    assert sync_declared(connection, [kind(every=60)]).changed == []
    assert len(due_schedules(connection, {"sweep"})) == 1
    sync_declared(connection, [kind(every=60, priority=5)])
    assert len(due_schedules(connection, {"sweep"})) == 1


def test_a_due_tick_of_both_rules_is_not_dropped_by_a_deploy(connection, clock):
    sync_declared(connection, [kind(every=120)])
    due = row().next_tick
    clock.move_to(due + timedelta(seconds=1))
    sync_declared(connection, [kind(every=60)])
    assert row().next_tick == due
    clock.move_to(due + timedelta(seconds=121))
    sync_declared(connection, [kind(every=30)])
    assert row().next_tick > clock.now


def test_an_operator_s_schedule_of_that_name_is_left_alone(connection, clock):
    add_schedule("sweep", "other.type", every=90)
    assert sync_declared(connection, [kind(every=60)]) == ([], [], ["sweep"])
    assert (row().job_type, row().every) == ("other.type", 90)


def test_what_no_code_declares_any_more_rests(connection, clock):
    sync_declared(connection, [kind(every=60)])
    clock.advance(3600)
    assert sync_declared(connection, []).changed == []
    assert due_schedules(connection, ()) == []
    assert row().enabled


def test_a_rival_s_insert_is_met(connection, clock):
    """Two workers that start together: the second one's INSERT finds the first one's row."""

    def insert(sql: str) -> bool:
        return "INSERT INTO leasequeue_schedule" in sql

    known = [kind(every=60)]
    with broken(connection, Fault(codes_for(connection)[0], match=insert, when="after")):
        sync_declared(connection, known)
    assert row().every == 60
    run(connection, "DELETE FROM leasequeue_schedule")
    sync_declared(connection, known)
    assert Schedule.objects.count() == 1


@pytest.mark.only_on("mariadb", "mysql", "postgres")
def test_a_row_that_somebody_holds_is_left_and_met_again(connection, session):
    """Control waits for no lock: a frozen worker, or an open psql, stops no deployment."""
    sync_declared(connection, [kind(every=60)])
    with session().cursor() as rival:
        rival.execute("BEGIN")
        rival.execute("SELECT id FROM leasequeue_schedule WHERE name = 'sweep' FOR UPDATE")
        assert sync_declared(connection, [kind(every=30)]) == ([], ["sweep"], [])
        assert row().every == 60
        rival.execute("ROLLBACK")
    assert sync_declared(connection, [kind(every=30)]).changed == ["sweep"]
    assert row().every == 30
    assert sync_declared(connection, [kind(every=30)]).changed == []
