"""Ticks become jobs: once, on the grid, by the database's clock, whatever the workers do."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest
from django.db import DataError, connections

from django_leasequeue import add_schedule, enqueue, next_ticks
from django_leasequeue.core.dialect import dialect_for
from django_leasequeue.core.recover import recover_batch
from django_leasequeue.core.settle import Ending, Verdict, settle
from django_leasequeue.core.ticking import AT_ONCE, BATCH, due_schedules, seconds_to_next, tick
from django_leasequeue.exceptions import ScheduleError
from django_leasequeue.models import Job, Schedule
from django_leasequeue.outcomes import End, Outcome
from django_leasequeue.registry import registry
from django_leasequeue.signing import verify
from django_leasequeue.testing import freeze, run_jobs
from tests.core.arrange import claim_one, run, write
from tests.statements import count_statements

pytestmark = pytest.mark.usefixtures("connection")

START = datetime(2026, 5, 1, 12, 0, 7, tzinfo=UTC)

FAR = datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)


@pytest.fixture
def clock():
    with freeze(START) as clock:
        yield clock


def minutes(*numbers: int) -> list[datetime]:
    return [START.replace(minute=number, second=0) for number in numbers]


def take(connection):
    """Take all that is due, as a worker's pass does; return the ticks of the jobs."""
    return [
        ticked.tick_at
        for number in due_schedules(connection, ())
        for ticked in tick(connection, number)
        if ticked.job_id
    ]


def left(connection) -> float:
    seconds = seconds_to_next(connection, ())
    assert seconds is not None
    return seconds


def test_a_tick_makes_one_job_with_all_that_the_schedule_says(connection, clock):
    add_schedule("a", "some.type", {"n": 1}, every=60, queue="q", priority=7)
    assert take(connection) == []
    clock.move_to(minutes(1)[0])
    assert take(connection) == minutes(1)
    assert take(connection) == []
    job = Job.objects.get()
    assert (job.schedule, job.tick_at) == ("a", minutes(1)[0])
    assert (job.job_type, job.queue_name, job.priority) == ("some.type", "q", 7)
    assert (job.payload, job.status, job.max_attempts) == ({"n": 1}, "ready", 5)
    assert job.available_at == minutes(1)[0]
    row = Schedule.objects.get()
    assert (row.last_tick, row.next_tick) == tuple(minutes(1, 2))


def test_the_limits_of_a_type_that_is_known(connection, clock, declare):
    declare("limited", max_attempts=9, max_crashes=2, version=3)(lambda: None)
    add_schedule("a", "limited", every=60)
    clock.advance(60)
    take(connection)
    job = Job.objects.get()
    assert (job.max_attempts, job.max_crashes, job.payload_version) == (9, 2, 3)


def test_ticks_are_on_the_grid_however_late_the_look(connection, clock):
    """H9: an interval of 60 s, looked at every 67 s."""
    add_schedule("a", "some.type", every=60)
    found = []
    for _ in range(30):
        clock.advance(67)
        found += take(connection)
    assert found == [START.replace(second=0) + timedelta(minutes=n + 1) for n in range(33)]


@pytest.mark.parametrize(
    ("catch_up", "late", "expected"),
    [
        ("latest", 3 * 3600, [-1]),
        ("all", 3 * 3600, range(180)),
        ("none", 3 * 3600, [-1]),
        # The change-over between two instances loses nothing.
        ("latest", 90, range(1)),
        ("latest", 150, range(2)),
        ("none", 150, range(2)),
        ("all", 90, range(1)),
    ],
)
def test_after_down_time(connection, clock, catch_up, late, expected):
    """H5: of a minute's schedule one, the latest, or all of them."""
    add_schedule("a", "some.type", every=60, catch_up=catch_up)
    clock.advance(late)
    found = []
    while left(connection) <= 0:
        found += take(connection)
    past = [START.replace(second=0) + timedelta(minutes=n + 1) for n in range((late + 7) // 60)]
    assert found == [past[number] for number in expected]
    assert 0 < left(connection) <= 60


def test_no_catching_up_leaves_out_what_is_late(connection, clock):
    add_schedule("a", "some.type", cron="0 13 * * *", catch_up="none")
    clock.advance(3600 + 120)
    assert take(connection) == []
    assert Schedule.objects.get().next_tick == START.replace(day=2, hour=13, minute=0, second=0)
    clock.move_to(START.replace(day=2, hour=13, minute=0, second=59))
    assert take(connection) == [START.replace(day=2, hour=13, minute=0, second=0)]


def test_catching_up_is_bounded_per_transaction(connection, clock):
    add_schedule("a", "some.type", every=1, catch_up="all")
    clock.advance(AT_ONCE * 2)
    assert [len(take(connection)) for _ in range(3)] == [AT_ONCE, AT_ONCE, 0]


def test_many_years_of_down_time_are_a_short_search(connection, clock):
    add_schedule("a", "some.type", every=1)
    clock.move_to(START.replace(year=2040))
    assert take(connection) == [START.replace(year=2040)]


def test_a_tick_stays_unique_after_its_job_was_pruned(connection, clock):
    add_schedule("a", "some.type", every=60)
    clock.advance(60)
    assert take(connection) == minutes(1)
    run(connection, "DELETE FROM leasequeue_job")
    Schedule.objects.update(next_tick=minutes(0)[0])
    assert take(connection) == []
    assert Schedule.objects.get().next_tick == minutes(2)[0]


def test_a_tick_stays_unique_when_its_schedule_is_made_again(connection, clock):
    add_schedule("a", "some.type", every=60, queue="one")
    clock.advance(60)
    assert take(connection) == minutes(1)
    Schedule.objects.all().delete()
    clock.move_to(START)
    add_schedule("a", "some.type", every=60, queue="other", key="k")
    clock.advance(60)
    assert take(connection) == []
    assert Job.objects.count() == 1


def test_a_clock_that_goes_back_repeats_no_tick(connection, clock):
    """H11: an hour back, an hour on, and then an hour ahead."""
    add_schedule("a", "some.type", every=60)
    clock.advance(120)
    found = take(connection)
    clock.move_to(clock.now - timedelta(seconds=3540))
    found += take(connection)
    clock.advance(3600)
    found += take(connection)
    clock.advance(3600)
    found += take(connection)
    assert found == [START.replace(second=0) + timedelta(minutes=n) for n in (1, 2, 3, 63)]


def test_sessions_with_clocks_an_hour_apart(connection, clock):
    """H11: the worker ahead ticks first, the other one has nothing left to do."""
    add_schedule("a", "some.type", every=60, catch_up="all")
    clock.advance(3600)
    found = [tick for _ in range(6) for tick in take(connection)]
    clock.move_to(clock.now - timedelta(hours=1))
    found += take(connection)
    clock.advance(3600)
    found += take(connection)
    assert len(found) == len(set(found)) == 60


@pytest.mark.only_on("mariadb", "mysql")
def test_a_session_whose_clock_is_an_hour_ahead_or_behind(connection, session):
    """H11: no tick twice, none before it is due by two clocks, and no lease shown by both.

    The job that a session ahead takes for lost is the other's no more: its end is refused.
    """
    schedule = add_schedule("a", "some.type", every=1800)
    job_id = enqueue("some.type").id
    held = claim_one(connection)
    ahead, behind = session(), session()
    run(ahead, "SET timestamp = UNIX_TIMESTAMP() + 3600")
    run(behind, "SET timestamp = UNIX_TIMESTAMP() - 3600")
    assert [ticked.job_id is not None for ticked in tick(ahead, schedule.pk)] == [True]
    for one in (connection, behind, ahead):
        assert tick(one, schedule.pk) == []
    assert recover_batch(behind) == []
    (recovered,) = recover_batch(ahead)
    assert recovered.job_id == job_id
    (end,) = settle(connection, [Ending(held.lease, Outcome(End.COMPLETED))])
    assert end.verdict is Verdict.LOST
    assert Job.objects.get(pk=job_id).status == "ready"


def test_a_key_holds_ticks_back_while_its_job_lives(connection, clock):
    add_schedule("a", "some.type", every=60, key="one at a time")
    add_schedule("b", "some.type", every=60, key="one at a time")
    enqueue("some.type", key="one at a time", key_until="finished", delay=7200)
    clock.advance(60)
    assert take(connection) == minutes(1)
    clock.advance(60)
    assert take(connection) == []
    job = Job.objects.get(schedule="a")
    write(connection, job.id, status="done", live_key=None)
    clock.advance(60)
    assert take(connection) == minutes(3)


def test_jobs_are_signed(connection, clock, settings):
    settings.LEASEQUEUE = {**settings.LEASEQUEUE, "SIGNING_KEYS": ["a key of sixteen and more"]}
    add_schedule("a", "some.type", {"n": 1}, every=60)
    clock.advance(60)
    take(connection)
    assert verify(Job.objects.get())


def test_the_handler_knows_its_tick(connection, clock, declare):
    seen = []

    @declare("some.type", takes_context=True)
    def handler(context):
        seen.append((context.schedule, context.tick_at))

    add_schedule("a", "some.type", every=60)
    clock.move_to(minutes(1)[0])
    take(connection)
    enqueue("some.type")
    run_jobs()
    assert seen == [("a", minutes(1)[0]), ("", None)]


def test_it_can_be_run(connection, clock):
    add_schedule("a", "some.type", {"n": 1}, every=60)
    clock.advance(60)
    take(connection)
    held = claim_one(connection)
    assert held.job_type == "some.type"
    clock.advance(3600)
    assert len(recover_batch(connection)) == 1


def test_no_code_of_the_project_runs(connection, clock, declare):
    def broken(**payload):
        raise AssertionError

    declare("keyed", key=broken)(broken)
    Schedule.objects.create(name="a", job_type="keyed", every=60)
    take(connection)
    clock.advance(60)
    assert take(connection) == minutes(1)


def test_rows_of_plain_sql_are_planned_first(connection, clock):
    """They never tick at once, and never for time that has passed."""
    run(
        connection,
        "INSERT INTO leasequeue_schedule (name, job_type, cron) VALUES ('a', 't', '* * * * *')",
    )
    assert seconds_to_next(connection, ()) == 0
    assert take(connection) == []
    assert Schedule.objects.get().next_tick == minutes(1)[0]
    assert seconds_to_next(connection, ()) == 53
    clock.advance(60)
    assert take(connection) == minutes(1)
    assert Job.objects.get().payload == {}


@pytest.mark.parametrize(
    "spoiled",
    [
        *({"cron": "x"}, {"every": -1}, {"timezone": "Mars"}, {"payload": [1]}),
        *({"last_tick": FAR}, {"next_tick": datetime.min.replace(tzinfo=UTC)}),
    ],
)
def test_a_row_that_cannot_tick_is_reported_and_left(connection, clock, spoiled):
    add_schedule("a", "some.type", every=60)
    add_schedule("b", "some.type", every=60)
    Schedule.objects.filter(name="a").update(**spoiled)
    clock.advance(60)
    taken = [t for number in due_schedules(connection, ()) for t in tick(connection, number)]
    assert {(t.schedule, bool(t.error), bool(t.job_id)) for t in taken} == {
        ("a", True, False),
        ("b", False, True),
    }
    assert left(connection) <= 0, "another worker may know better: it is left as it is"


def test_what_other_code_declares_is_not_ticked(connection, clock):
    Schedule.objects.create(name="a", job_type="t", every=60, declared_in_code=True)
    assert (seconds_to_next(connection, ()), due_schedules(connection, ())) == (None, [])
    assert seconds_to_next(connection, {"a", "b"}) == 0
    assert len(due_schedules(connection, {"a"})) == 1


def test_disabled_schedules_do_not_tick(connection, clock):
    add_schedule("a", "some.type", every=60, enabled=False)
    clock.advance(3600)
    assert (seconds_to_next(connection, ()), take(connection)) == (None, [])
    assert tick(connection, Schedule.objects.get().pk) == []


@pytest.mark.only_on("mariadb", "mysql", "postgres")
def test_a_schedule_that_a_rival_holds_is_skipped(connection, clock, session):
    add_schedule("a", "some.type", every=60)
    clock.advance(60)
    rival = session()
    with rival.cursor() as cursor:
        cursor.execute(dialect_for(rival).begin)
        cursor.execute("SELECT id FROM leasequeue_schedule FOR UPDATE")
        assert take(connection) == []
        cursor.execute("ROLLBACK")
    assert take(connection) == minutes(1)


def test_rivals_share_a_tick(connection, clock):
    schedules = [add_schedule(f"s{n}", "some.type", every=60).pk for n in range(5)]
    clock.advance(60)

    def race() -> int:
        mine = connections["default"]
        try:
            return sum(len(tick(mine, number)) for number in schedules)
        finally:
            mine.close()

    with ThreadPoolExecutor(4) as pool:
        counts = [pool.submit(race) for _ in range(4)]
        assert sum(count.result() for count in counts) == 5
    assert Job.objects.count() == 5


def test_tasks_are_scheduled_by_their_path(connection, clock):
    """Of django.tasks: the job is the one that enqueueing the task would have made."""
    add_schedule("a", "tests.backend.sample.double", {"args": [4], "kwargs": {}}, every=60)
    clock.advance(60)
    take(connection)
    job = Job.objects.get()
    assert (job.job_type, job.payload) == (
        "tests.backend.sample.double",
        {"args": [4], "kwargs": {}},
    )


@pytest.mark.parametrize("count", [0, 3])
def test_a_look_is_one_statement(connection, clock, count):
    for number in range(count):
        add_schedule(f"a{number}", "some.type", every=60)
    with count_statements(connection) as counted:
        left = seconds_to_next(connection, {"a", "b"})
    assert len(counted) == 1
    assert left == (53 if count else None)


def test_the_statements_of_a_tick(connection, clock):
    schedule = add_schedule("a", "some.type", every=60)
    clock.advance(60)
    with count_statements(connection) as counted:
        assert len(tick(connection, schedule.pk)) == 1
    # [The isolation level,] BEGIN, the row, its ticks, whether there is a job, the job, COMMIT.
    assert len(counted) in (6, 7)


def test_a_row_that_the_database_refuses_is_put_off(connection, clock):
    schedule = add_schedule("a", "some.type", every=60)
    clock.advance(60)

    def refuse(execute, sql, params, many, context):
        if "INSERT INTO leasequeue_job" in sql:
            raise DataError("hunter2")
        return execute(sql, params, many, context)

    with connection.execute_wrapper(refuse):
        (ticked,) = tick(connection, schedule.pk)
    assert (ticked.schedule, ticked.error, ticked.job_id) == ("a", "DataError", None)
    assert 0 < left(connection) <= 60
    clock.advance(120)
    assert take(connection) == minutes(3)


@pytest.mark.only_on("mariadb", "mysql", "postgres")
def test_a_row_that_the_database_refuses_and_a_rival_holds_is_left(connection, clock, session):
    schedule = add_schedule("a", "some.type", every=60)
    clock.advance(60)
    rival = session()

    def refuse(execute, sql, params, many, context):
        if "INSERT INTO leasequeue_job" not in sql:
            return execute(sql, params, many, context)
        raise DataError("hunter2")

    def hold(execute, sql, params, many, context):
        result = execute(sql, params, many, context)
        if sql == "ROLLBACK":
            run(rival, "BEGIN")
            run(rival, f"SELECT id FROM leasequeue_schedule WHERE id = {schedule.pk} FOR UPDATE")
        return result

    with connection.execute_wrapper(refuse), connection.execute_wrapper(hold):
        assert tick(connection, schedule.pk) == []
    run(rival, "ROLLBACK")
    assert left(connection) <= 0


@pytest.mark.parametrize("mended", [{"enabled": False, "next_tick": None}, {"next_tick": FAR}])
def test_a_row_that_the_database_refused_and_somebody_mended_is_left(connection, clock, mended):
    schedule = add_schedule("a", "some.type", every=60)
    clock.advance(60)
    found = []

    def interfere(execute, sql, params, many, context):
        if "INSERT INTO leasequeue_job" in sql:
            raise DataError("hunter2")
        result = execute(sql, params, many, context)
        if sql == "ROLLBACK":
            Schedule.objects.update(**mended)
            found.extend(Schedule.objects.values_list("enabled", "next_tick"))
        return result

    with connection.execute_wrapper(interfere):
        assert tick(connection, schedule.pk) == []
    assert [*Schedule.objects.values_list("enabled", "next_tick")] == found


def test_all_have_their_turn_however_many_there_are(connection, clock):
    for number in range(BATCH + 5):
        add_schedule(f"s{number:03}", "some.type", every=60)
    clock.advance(60)
    first = due_schedules(connection, ())
    assert len(first) == BATCH
    rest = due_schedules(connection, (), first[-1])
    assert len(rest) == 5
    assert due_schedules(connection, (), rest[-1]) == first


def test_a_clock_at_the_end_of_the_calendar_is_said(connection, clock):
    schedule = add_schedule("a", "some.type", every=60)
    Schedule.objects.update(last_tick=FAR)
    schedule.refresh_from_db()
    with pytest.raises(ScheduleError, match="no tick after 9999"):
        next_ticks(schedule)


def test_an_older_payload_is_upcast(connection, clock, declare):
    """A schedule outlives the handler that its payload was written for."""
    got = []

    @declare("versioned", version=2)
    def second(total):
        got.append(total)

    add_schedule("sums", "versioned", {"total": 1}, every=60)
    registry.remove("versioned")

    @declare("versioned", version=3, upcast=lambda payload, version: {"sum": payload["total"]})
    def third(sum):  # noqa: A002
        got.append(sum)

    clock.advance(60)
    (number,) = due_schedules(connection, ())
    (ticked,) = tick(connection, number)
    assert Job.objects.get(pk=ticked.job_id).payload_version == 2
    assert [one.outcome for one in run_jobs()] == ["completed"]
    assert got == [1]
