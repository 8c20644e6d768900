"""A bulk run: which jobs, how many of them, in which statements, and never one twice."""

from __future__ import annotations

import re
import time
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta

import pytest
from django.db import transaction

from django_leasequeue import cancel, enqueue
from django_leasequeue.core.bulk import (
    RunExists,
    cancel_many,
    cancel_run,
    go_on,
    requeue_many,
    start,
)
from django_leasequeue.core.bulk_chunk import take_chunk
from django_leasequeue.core.bulk_filter import JobFilter
from django_leasequeue.core.bulk_plan import Options, Plan, State
from django_leasequeue.core.bulk_step import step
from django_leasequeue.core.clock import read_now
from django_leasequeue.core.dialect import dialect_for
from django_leasequeue.exceptions import LeaseQueueError
from django_leasequeue.models import BulkRun, DeadGroup, Job
from tests.core.arrange import claim_jobs, job, run, running, shift, snapshot
from tests.core.bulk import after_chunk, bury, statuses
from tests.faults import Fault, broken, holding_job
from tests.statements import count_statements

pytestmark = pytest.mark.usefixtures("connection")
SERVERS = pytest.mark.only_on("mariadb", "mysql", "postgres")
NOON = datetime(2042, 1, 31, 12, tzinfo=UTC)
EARLY = datetime(2021, 1, 31, 12, tzinfo=UTC)
A_MOMENT = timedelta(milliseconds=1)


def test_every_dead_letter_and_nothing_else(connection):
    dead = [*bury(3), *bury(2, "other"), *bury(1, queue_name="mail")]
    others = [*bury(1, status="done"), *bury(1, status="cancelled"), enqueue("t").id]
    before = statuses(others)
    row = requeue_many(JobFilter(), by="ops")
    assert (row.state, row.changed, row.left_out, row.by) == ("finished", 6, {}, "ops")
    assert row.finished_at is not None
    assert statuses(dead) == ["ready"] * 6
    assert statuses(others) == before
    assert {(one.attempts, one.finished_at) for one in Job.objects.filter(pk__in=dead)} == {
        (0, None)
    }


@pytest.mark.parametrize(
    ("wanted", "columns", "others"),
    [
        ({"queue": "mail"}, {"queue_name": "mail"}, {}),
        ({"job_type": "wanted"}, {"job_type": "wanted"}, {}),
        (
            {"job_type": "wanted", "queue": "mail"},
            {"job_type": "wanted", "queue_name": "mail"},
            {"job_type": "wanted"},
        ),
        ({"fingerprint": "f" * 16}, {"fingerprint": "f" * 16}, {}),
        ({"died_after": EARLY}, {"finished_at": EARLY}, {"finished_at": EARLY - A_MOMENT}),
        ({"died_before": EARLY}, {"finished_at": EARLY - A_MOMENT}, {"finished_at": EARLY}),
        (
            {"died_after": EARLY, "died_before": EARLY + A_MOMENT},
            {"finished_at": EARLY},
            {"finished_at": EARLY + A_MOMENT},
        ),
        ({"statuses": ["cancelled"]}, {"status": "cancelled"}, {}),
        ({"statuses": ["cancelled", "dead"]}, {"status": "cancelled"}, {"status": "done"}),
    ],
    ids=",".join,
)
def test_conditions(wanted, columns, others):
    match, kept = bury(3, **columns), bury(3, **others)
    row = requeue_many(JobFilter(**wanted))
    assert row.changed == 3
    assert statuses(match) == ["ready"] * 3
    assert set(statuses(kept)) == {others.get("status", "dead")}
    assert JobFilter.from_json(row.filter) == JobFilter(**wanted)


def test_a_group(connection):
    bury(2)
    group = DeadGroup.objects.create(fingerprint="a" * 16)
    ids = bury(2, fingerprint="a" * 16)
    assert requeue_many(group).changed == 2
    assert statuses(ids) == ["ready"] * 2


def test_ids_and_why_the_others_are_left_out(connection):
    dead, (done,) = bury(401), bury(1, status="done")
    row = requeue_many(JobFilter(ids=[*dead[1:], done, 10**12]))
    assert (row.changed, row.left_out) == (400, {"other_status": 1, "gone": 1})
    assert statuses(dead) == ["dead", *["ready"] * 400]


def test_keys_that_live_jobs_have(connection):
    first = enqueue("t", key="a", key_until="finished")
    cancel(first)
    second = enqueue("t", key="a", key_until="finished")
    cancel(second)
    third = enqueue("t", key="b", key_until="finished")
    cancel(third)
    enqueue("t", key="b", key_until="finished")
    free = enqueue("t", key="c", key_until="finished")
    cancel(free)
    wanted = JobFilter(statuses=["cancelled"])
    told = requeue_many(wanted, dry_run=True)
    row = requeue_many(wanted)
    assert (row.changed, row.left_out) == (told.changed, told.left_out) == (2, {"key_held": 2})
    assert statuses([first.id, second.id, third.id, free.id]) == [
        "ready", "cancelled", "cancelled", "ready",
    ]  # fmt: skip


@pytest.mark.parametrize("by_ids", [False, True])
def test_a_dry_run_counts_and_writes_nothing(connection, by_ids):
    ids = [*bury(1201), *bury(2, "other")]
    wanted = JobFilter(ids=[*ids, 10**12]) if by_ids else JobFilter()
    before = snapshot(connection)
    with count_statements(connection) as statements:
        row = requeue_many(wanted, dry_run=True)
    kinds = {sql.split("*/ ")[-1].split()[0] for sql in statements}
    assert kinds <= {"SELECT", "SET", "START", "BEGIN", "COMMIT"}
    assert not row.pk
    assert row.changed == 1203
    assert row.left_out == ({"gone": 1} if by_ids else {})
    assert snapshot(connection) == before
    assert not BulkRun.objects.exists()


def test_what_dies_later_is_not_part_of_the_run(connection):
    ids = bury(300)
    row = start("requeue", JobFilter(), Options())

    def die_again():
        run(connection, "UPDATE leasequeue_job SET status = 'dead' WHERE status = 'ready'")
        for job_id in (ids[0], ids[199], ids[250]):
            shift(connection, job_id, "finished_at", 1)

    later = bury(1)
    row = go_on(row.pk, told=after_chunk(1, die_again))
    assert row.changed == 299  # the 251st died again before its turn
    assert statuses([ids[0], ids[199], ids[250], ids[299], *later]) == [
        "dead", "dead", "dead", "ready", "dead",
    ]  # fmt: skip


def test_statements_of_a_chunk(connection):
    bury(1000)
    with count_statements(connection) as statements:
        requeue_many(JobFilter())
    kinds = " ".join(re.sub(r"/\*.*?\*/ ", "", sql).split()[0] for sql in statements)
    begin = "START" if "START" in kinds else "BEGIN"
    planning = " SELECT" * len(dialect_for(connection).by_index)
    assert f"{begin} SELECT{planning} SELECT SELECT UPDATE UPDATE COMMIT" in kinds
    chunks = kinds.replace("SET ", "").split(begin)
    assert [chunk.count("UPDATE UPDATE") for chunk in chunks] == [0, 1, 1, 1, 1, 1, 0]
    assert max(sql.count("%s") for sql in statements) < 210


def test_few_matches_among_very_many_take_few_chunks(connection):
    bury(3000)
    bury(3, queue_name="mail")
    with count_statements(connection) as statements:
        assert requeue_many(JobFilter(queue="mail")).changed == 3
    assert statements.count("COMMIT") < 10


def test_spread(connection):
    ids = bury(300)
    requeue_many(JobFilter(), spread=1000)
    now = Job.objects.filter(pk__in=ids).due().count()
    assert now < 30
    times = sorted(Job.objects.filter(pk__in=ids).values_list("available_at", flat=True))
    assert timedelta(seconds=800) < times[-1] - times[0] < timedelta(seconds=1100)
    assert times[0] < times[75] < times[150] < times[225]
    middle = (times[150] - times[0]) / (times[-1] - times[0])
    assert 0.35 < middle < 0.65
    shift(connection, ids[0], "available_at", 1001)
    assert times[-1] < job(ids[0]).available_at


def test_cancelling_from_outside(second_connection):
    ids = bury(1000)
    other = second_connection()
    row = start("requeue", JobFilter(), Options())

    def press():
        run(other, f"UPDATE leasequeue_bulkrun SET state = 'cancelled' WHERE id = {row.pk}")

    row = go_on(row.pk, told=after_chunk(2, press))
    assert (row.state, row.changed) == ("cancelled", 400)
    assert statuses(ids).count("ready") == 400
    with pytest.raises(LeaseQueueError, match="start a new one"):
        go_on(row.pk)


def test_cancel_run():
    bury(1)
    row = start("requeue", JobFilter(), Options())
    assert cancel_run(row.pk)
    assert not cancel_run(row.pk)
    row.refresh_from_db()
    assert (row.state, row.finished_at is None) == ("cancelled", False)
    assert requeue_many(JobFilter()).changed == 1


class Stop(Exception):
    pass


def test_going_on_after_a_crash(connection):
    ids = bury(1000)

    def crash():
        raise Stop

    row = start("requeue", JobFilter(), Options())
    with pytest.raises(Stop):
        go_on(row.pk, told=after_chunk(3, crash))
    row.refresh_from_db()
    assert (row.state, row.changed) == ("running", 600)
    run(connection, "UPDATE leasequeue_job SET status = 'done' WHERE status = 'ready'")
    row = go_on(row.pk)
    assert (row.state, row.changed) == ("finished", 1000)
    assert statuses(ids) == ["done"] * 600 + ["ready"] * 400


def test_two_may_carry_on_one_run():
    ids = bury(1000)
    row = start("requeue", JobFilter(), Options())
    inner = []
    outer = go_on(row.pk, told=after_chunk(2, lambda: inner.append(go_on(row.pk))))
    assert [(one.state, one.changed) for one in (outer, *inner)] == [("finished", 1000)] * 2
    assert statuses(ids) == ["ready"] * 1000


def test_two_runs_over_the_same_ids_requeue_none_twice():
    """A double click: what the first one requeued and died again is not the second one's."""
    ids = bury(3)
    second = start("requeue", JobFilter(ids=ids), Options())
    assert requeue_many(JobFilter(ids=ids)).changed == 3
    later = second.started_at + timedelta(seconds=5)
    Job.objects.filter(pk__in=ids).update(status="dead", finished_at=later)
    assert go_on(second.pk).changed == 0
    assert statuses(ids) == ["dead"] * 3


@pytest.mark.parametrize("when", ["before", "after"])
@SERVERS
def test_a_commit_whose_answer_is_lost(connection, when):
    ids = bury(500)
    code = "08006" if connection.vendor == "postgresql" else 2013
    fault = Fault(code, at=2, when=when, match=lambda sql: sql == "COMMIT")
    with broken(connection, fault):
        row = requeue_many(JobFilter())
    assert fault.fired == 1
    assert (row.changed, row.left_out) == (500, {})
    assert statuses(ids) == ["ready"] * 500


@SERVERS
def test_a_locked_job_is_waited_for_then_left_out(connection, second_connection):
    ids = bury(5)
    with holding_job(second_connection(), ids[2]):
        row = requeue_many(JobFilter())
    assert (row.changed, row.left_out) == (4, {"locked": 1})
    assert statuses(ids) == ["ready", "ready", "dead", "ready", "ready"]


@pytest.fixture
def clock(connection, monkeypatch):
    """The database's clock, and the drive's: sleeps alone move them."""
    now = [100.0]
    dialect = dialect_for(connection)
    stopped_at = read_now(connection)
    clocks = ExitStack()

    def move(seconds):
        now[0] += seconds
        clocks.close()
        clocks.enter_context(
            dialect.clock(stopped_at=stopped_at + timedelta(seconds=now[0] - 100.0))
        )

    move(0)
    monkeypatch.setattr("django_leasequeue.core.bulk_drive.time.monotonic", lambda: now[0])
    monkeypatch.setattr("django_leasequeue.core.bulk_drive.time.sleep", move)
    with clocks:
        yield now


def test_rate(clock):
    bury(25)
    heard = []
    row = requeue_many(
        JobFilter(), rate=10, told=lambda chunk: heard.append((clock[0], len(chunk.changed)))
    )
    assert heard == [(100.0, 10), (pytest.approx(101.0), 10), (pytest.approx(102.0), 5)]
    assert row.changed == 25


def test_a_rate_is_for_jobs_that_are_changed(connection, clock):
    """Jobs that do not match cost no time of it."""
    bury(5000)
    ids = bury(2, queue_name="mail")
    heard = []
    requeue_many(JobFilter(queue="mail"), rate=1, told=lambda chunk: heard.append(clock[0]))
    assert heard == [100.0, pytest.approx(101.0)]
    assert statuses(ids) == ["ready"] * 2


def test_the_rate_is_one_however_many_drive_the_run(connection, clock):
    ids = bury(40)
    begun = start("requeue", JobFilter(), Options(rate=10))
    chunks = [take_chunk(connection, Plan.of(begun), 200, 200, patient=True) for _ in range(5)]
    assert [len(chunk.changed) for chunk in chunks] == [10, 0, 0, 0, 0]
    assert [chunk.pause for chunk in chunks] == [pytest.approx(1.0)] * 5
    for _ in range(5):  # as many pages that are open
        step(connection, begun.pk, seconds=0)
    assert statuses(ids).count("ready") == 10
    step(connection, begun.pk, seconds=2.5)
    assert statuses(ids).count("ready") == 30


def test_rate_of_a_run_that_two_processes_drive(connection, clock):
    """It is the run's: another process may not do anything in between."""
    bury(40)
    begun = start("requeue", JobFilter(), Options(rate=10))
    heard = []

    def told(chunk):
        heard.append(clock[0])
        if len(heard) == 1:
            take_chunk(connection, Plan.of(begun), 10, 10, patient=True)

    assert go_on(begun.pk, told=told).changed == 40
    assert heard == [pytest.approx(at) for at in (100.0, 101.0, 102.0, 103.0)]


def test_a_wait_for_those_that_go_first_saves_up_nothing(clock):
    """Nor when another process has found that they are done."""
    bury(25)
    begun = start("requeue", JobFilter(), Options(rate=10, canary=5))
    heard = []

    def told(chunk):
        heard.append(clock[0])
        if len(heard) == 1:
            time.sleep(60)  # of the clock above
            BulkRun.objects.update(state=State.RUNNING)

    assert go_on(begun.pk, told=told).changed == 25
    assert heard == [pytest.approx(at) for at in (100.0, 160.0, 161.0)]


def test_types_that_are_empty_are_types():
    """Plain SQL can put them in."""
    (empty,), (named,) = bury(1, ""), bury(1, "named")
    assert requeue_many(JobFilter(job_type=""), dry_run=True).changed == 1
    assert requeue_many(JobFilter(job_type="")).changed == 1
    assert statuses([empty, named]) == ["ready", "dead"]
    bury(2, "")
    assert requeue_many(JobFilter()).changed == 3


def test_what_died_at_no_known_time_died_before_any():
    (unknown,) = bury(1, finished_at=None)
    (known,) = bury(1, finished_at=EARLY)
    assert requeue_many(JobFilter(died_after=EARLY), dry_run=True).changed == 1
    assert requeue_many(JobFilter(died_before=EARLY)).changed == 1
    assert statuses([unknown, known]) == ["ready", "dead"]


def test_groups_that_are_left_out():
    kept, taken, bare = (bury(2, fingerprint=one) for one in ("a" * 16, "b" * 16, ""))
    wanted = JobFilter(without=["a" * 16])
    assert JobFilter.from_json(wanted.as_json()) == wanted
    assert requeue_many(wanted).changed == 4
    assert statuses([*kept, *taken, *bare]) == ["dead"] * 2 + ["ready"] * 4


def test_named_jobs_that_died_again_after_they_were_shown():
    ids = bury(2, finished_at=EARLY)
    Job.objects.filter(pk=ids[0]).update(finished_at=NOON)
    wanted = JobFilter(ids=ids, died_before=EARLY + A_MOMENT)
    assert JobFilter.from_json(wanted.as_json()) == wanted
    assert requeue_many(wanted).changed == 1
    assert statuses(ids) == ["dead", "ready"]


def test_what_brings_the_same_token_is_one_run():
    first = start("requeue", JobFilter(), Options(), token="t")
    with pytest.raises(RunExists) as met:
        start("cancel", JobFilter(), Options(), token="t")
    assert met.value.run.pk == first.pk
    assert start("requeue", JobFilter(), Options()).pk != first.pk
    assert start("requeue", JobFilter(), Options()).token is None
    assert BulkRun.objects.count() == 3


@pytest.mark.leaves_reserved
def test_cancel_many(connection):
    (held,) = running(connection)
    ids = [*bury(2), enqueue("arranged").id, held.job_id]
    assert cancel_many(JobFilter(), dry_run=True).changed == 2
    row = cancel_many(JobFilter(statuses=["dead", "ready", "reserved"]))
    assert (row.operation, row.changed) == ("cancel", 4)
    assert statuses(ids) == ["cancelled"] * 4


@pytest.mark.parametrize(
    ("wanted", "options", "says"),
    [
        ({"ids": [1], "queue": "q"}, {}, "stand for themselves"),
        ({"ids": [0]}, {}, "from 1 on"),
        ({"ids": range(1, 50_002)}, {}, "50000 is the most"),
        ({"queue": "x" * 65}, {}, "queue is a text"),
        ({"without": ["a" * 17]}, {}, "without is a text"),
        ({"without": map(str, range(501))}, {}, "500 is the most"),
        ({"ids": [1], "without": ["a"]}, {}, "stand for themselves"),
        ({"job_type": "x" * 256}, {}, "255"),
        ({"fingerprint": "\0"}, {}, "no database can store"),
        ({"statuses": ["failed"]}, {}, "statuses are some of"),
        ({"statuses": ["ready"]}, {}, "requeue is for jobs that are dead, cancelled"),
        ({"died_after": NOON.replace(tzinfo=None)}, {}, "needs a time zone"),
        ({}, {"rate": 0}, "jobs a second"),
        ({}, {"rate": float("nan")}, "jobs a second"),
        ({}, {"canary": 201}, "0 to 200"),
        ({}, {"spread": -1}, "spread is seconds"),
        ({}, {"canary_wait": float("inf")}, "canary_wait is seconds"),
    ],
    ids=str,
)
def test_what_is_refused(wanted, options, says):
    bury(1)
    with pytest.raises(LeaseQueueError, match=says):
        requeue_many(JobFilter(**wanted), **options)
    assert not BulkRun.objects.exists()


def test_not_inside_a_transaction():
    with transaction.atomic(), pytest.raises(LeaseQueueError, match="outside of atomic"):
        requeue_many(JobFilter())
    with pytest.raises(LeaseQueueError, match="no bulk run 7"):
        go_on(7)


@pytest.mark.leaves_reserved
def test_claims_go_on_between_chunks(connection, session):
    bury(600)
    worker = session()
    found = []
    requeue_many(JobFilter(), told=lambda chunk: found.append(len(claim_jobs(worker, 5))))
    assert found == [5, 5, 5]
