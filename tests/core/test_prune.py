"""What prune takes and what it leaves: status, type, queue, age, settings, its limits."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import transaction
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from django_leasequeue import LeaseQueueError, enqueue, prune
from django_leasequeue.core import prune_run, pruning
from django_leasequeue.core.clock import UtcNow
from django_leasequeue.core.dialect import dialect_for
from django_leasequeue.models import BulkRun, Job, JobAttempt, JobEffect, Schedule, Worker
from django_leasequeue.retention import PRUNABLE
from django_leasequeue.statuses import Status
from tests.core.arrange import expire, run, running, shift, snapshot, write
from tests.core.pruning import DAY, age, left, old_jobs
from tests.faults.rivals import holding_job

pytestmark = pytest.mark.usefixtures("queue_db")

LIVE = sorted(set(Status) - set(PRUNABLE))
MONTH = timedelta(days=30)


@pytest.fixture
def retain(settings):
    def use(**retention):
        settings.LEASEQUEUE = {**settings.LEASEQUEUE, "RETENTION": retention}

    return use


def test_done_and_cancelled_jobs_that_are_old(connection):
    gone = old_jobs(connection, 3) + old_jobs(connection, 2, status="cancelled")
    kept = old_jobs(connection, 3, days=29) + old_jobs(connection, status="dead")
    for job_id in (gone[0], kept[0]):
        JobEffect.objects.create(job_id=job_id, name="charge")
    pruned = prune(older_than=MONTH)
    assert (pruned.jobs, pruned.attempts, pruned.effects) == (5, 5, 1)
    assert left() == sorted(kept)
    assert set(JobAttempt.objects.values_list("job_id", flat=True)) == set(kept)
    assert list(JobEffect.objects.values_list("job_id", flat=True)) == kept[:1]


def test_dead_letters_go_only_when_they_are_named(connection):
    dead = old_jobs(connection, 2, status="dead")
    assert prune(older_than=0).jobs == 0
    assert prune(status="done", older_than=0).jobs == 0
    assert left() == dead
    assert prune(status=["done", "dead"], older_than=0).jobs == 2


def test_a_dead_job_waits_for_its_burial(connection):
    waiting, taken, _closed = old_jobs(connection, 3, status="dead")
    shift(connection, waiting, "lease_until", -DAY)
    shift(connection, taken, "lease_until", DAY)
    assert prune(status="dead", older_than=0).jobs == 1
    assert left() == [waiting, taken]
    write(connection, waiting, lease_until=None)
    assert prune(status="dead", older_than=0).jobs == 1


@pytest.mark.parametrize("status", LIVE)
def test_a_live_status_cannot_be_named(connection, status):
    ids = old_jobs(connection, 2, status=status, days=400)
    with pytest.raises(LeaseQueueError, match="never pruned"):
        prune(status=status, older_than=0)
    with pytest.raises(LeaseQueueError, match="never pruned"):
        prune(status=["done", status], older_than=0)
    assert prune(older_than=0).jobs == prune(status=list(PRUNABLE), older_than=0).jobs == 0
    assert left() == ids
    age(connection, ids, 400)


@settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    rows=st.lists(
        st.tuples(
            st.sampled_from(sorted(Status)),
            st.sampled_from([0, 1, 29, 31, 400]),
            st.sampled_from(["a", "b"]),
            st.sampled_from(["x", "y"]),
            st.booleans(),
        ),
        max_size=12,
    ),
    statuses=st.one_of(st.none(), st.lists(st.sampled_from(PRUNABLE), min_size=1, unique=True)),
    job_type=st.sampled_from([None, "a"]),
    queue=st.sampled_from([None, "y"]),
    days=st.sampled_from([0, 30]),
    batch=st.integers(1, 4),
)
def test_exactly_what_was_asked_for(connection, rows, statuses, job_type, queue, days, batch):
    Job.objects.all().delete()
    wanted = set()
    for status, old, kind, name, buried in rows:
        options = {"days": old, "job_type": kind, "queue": name}
        (job_id,) = old_jobs(connection, status=status, **options)
        # A lease that has run out; a hook that is due.
        if buried and status in ("dead", "reserved"):
            shift(connection, job_id, "lease_until", -1)
        elif (
            status in (statuses or ["done", "cancelled"])
            and old >= days
            and kind == (job_type or kind)
            and name == (queue or name)
        ):
            wanted.add(job_id)
    before = set(left())
    pruned = prune(
        status=statuses, job_type=job_type, queue=queue, older_than=days * DAY, batch=batch
    )
    assert (before - set(left()), pruned.jobs) == (wanted, len(wanted))
    Job.objects.filter(status="reserved").delete()


def test_the_age_counts_from_the_end_and_not_from_the_beginning(connection):
    first, _second = old_jobs(connection, 2)
    shift(connection, first, "finished_at", -DAY)
    assert prune(older_than=MONTH).jobs == 1
    assert left() == [first]


def test_a_dry_run_counts_and_writes_nothing(connection, tmp_path):
    ids = old_jobs(connection, 7, attempts=3)
    JobEffect.objects.create(job_id=ids[0], name="charge")
    before = snapshot(connection)
    archive = tmp_path / "archive.gz"
    counted = prune(older_than=MONTH, batch=2, dry_run=True, archive=archive)
    assert snapshot(connection) == before
    assert not archive.exists()
    assert prune(older_than=MONTH) == counted
    assert (counted.jobs, counted.attempts, counted.effects) == (7, 21, 1)


@pytest.mark.parametrize("limit", [1, 3, 4, 9, 10, 11])
def test_a_limit(connection, limit):
    ids = old_jobs(connection, 5) + old_jobs(connection, 5, job_type="another")
    kept = old_jobs(connection, 5, queue="kept")
    assert prune(older_than=0, queue="default", limit=limit, batch=4).jobs == min(limit, 10)
    assert len(left()) == len(ids) + len(kept) - min(limit, 10)
    assert set(kept) <= set(left())


def test_each_batch_is_its_own_transaction(connection, second_connection):
    """I3: a rival session sees how far it is."""
    ids = old_jobs(connection, 10)
    seen = []
    rival = second_connection()

    def look(number):
        with rival.cursor() as cursor:
            cursor.execute("SELECT COUNT(*) FROM leasequeue_job")
            seen.append((number, cursor.fetchone()[0]))

    prune(older_than=0, batch=4, progress=look)
    assert seen == [(4, 6), (4, 2), (2, 0)]
    assert len(ids) == 10


def test_a_pause_lies_between_two_batches(connection, monkeypatch):
    old_jobs(connection, 5)
    pauses = []
    monkeypatch.setattr(prune_run, "sleep", pauses.append)
    prune(older_than=0, batch=2, pause=25)
    assert pauses == [25] * 2


#: How long a batch takes in the next test.
SECONDS = 0.02


def test_a_pause_is_longer_when_a_batch_takes_long(connection, monkeypatch):
    """A server that is slow, or busy, is left to the workers for longer."""
    old_jobs(connection, 5)
    pauses = []
    clock = iter(range(1000))
    monkeypatch.setattr(prune_run, "sleep", pauses.append)
    monkeypatch.setattr(prune_run, "monotonic", lambda: next(clock) * SECONDS)
    prune(older_than=0, batch=2)
    assert pauses == [pytest.approx(24 * SECONDS)] * 2
    old_jobs(connection, 5)
    prune(older_than=0, batch=2, pause=0)
    assert len(pauses) == 2


def test_a_batch_that_stood_still_is_not_waited_for_again(connection, monkeypatch):
    old_jobs(connection, 5)
    pauses = []
    clock = iter(range(0, 1000, 60))
    monkeypatch.setattr(prune_run, "sleep", pauses.append)
    monkeypatch.setattr(prune_run, "monotonic", lambda: float(next(clock)))
    prune(older_than=0, batch=2)
    assert pauses == [2.0] * 2


def test_a_batch_is_smaller_when_its_jobs_have_many_attempts(connection, monkeypatch):
    monkeypatch.setattr(pruning, "MOST_ATTEMPTS", 10)
    old_jobs(connection, 3, attempts=4)
    old_jobs(connection, 1, attempts=25)
    batches = []
    assert prune(older_than=0, progress=batches.append).attempts == 37
    assert batches == [2, 1, 1]


def test_a_job_that_somebody_has_locked_stays(connection, second_connection, db_kind):
    if db_kind == "sqlite":
        pytest.skip("has no row locks")
    held, free = old_jobs(connection, 2)
    with holding_job(second_connection(), held):
        assert prune(older_than=0).jobs == 1
    assert left() == [held]
    assert prune(older_than=0).jobs == 1
    assert free not in left()


def test_a_running_job_and_one_whose_lease_has_run_out(connection):
    _first, second = running(connection, 2)
    expire(connection, second.job_id)
    assert prune(status=list(PRUNABLE), older_than=0).jobs == 0
    age(connection, left(), 1)


def test_nothing_else_is_touched(connection):
    """The mark that keeps a tick from firing twice is the schedule's own, not its job's."""
    schedule = Schedule.objects.create(name="nightly", job_type="arranged")
    (job_id,) = old_jobs(connection)
    write(connection, job_id, schedule="nightly")
    Job.objects.filter(pk=job_id).update(tick_at=Job.objects.get(pk=job_id).created_at)
    Schedule.objects.update(last_tick=Job.objects.get(pk=job_id).tick_at)
    before = Schedule.objects.get(pk=schedule.pk).last_tick
    assert prune(older_than=0).jobs == 1
    assert before is not None
    assert Schedule.objects.get(pk=schedule.pk).last_tick == before


def test_a_pruned_job_gives_its_key_back(connection):
    job = enqueue("arranged", key="once")
    age(connection, [job.id], 40)
    assert not enqueue("arranged", key="once").created
    prune(older_than=MONTH)
    again = enqueue("arranged", key="once")
    assert again.created
    age(connection, [again.id], 0)


# Retention


def test_nothing_goes_without_an_age(connection):
    ids = [i for status in PRUNABLE for i in old_jobs(connection, status=status, days=4000)]
    assert prune().jobs == 0
    assert left() == ids


def test_the_settings_say_how_old(connection, retain):
    retain(
        done=MONTH,
        dead=60 * DAY,
        types={"audit": {"done": None}, "noise": {"done": 0, "cancelled": DAY}},
    )
    kept = {
        *old_jobs(connection, days=29),
        *old_jobs(connection, days=59, status="dead"),
        *old_jobs(connection, days=400, status="cancelled"),
        *old_jobs(connection, days=400, job_type="audit"),
        *old_jobs(connection, days=0.5, job_type="noise", status="cancelled"),
    }
    gone = [
        *old_jobs(connection, days=31),
        *old_jobs(connection, days=61, status="dead"),
        *old_jobs(connection, days=61, status="dead", job_type="audit"),
        *old_jobs(connection, days=0.1, job_type="noise"),
        *old_jobs(connection, days=2, job_type="noise", status="cancelled"),
    ]
    assert prune(dry_run=True).jobs == prune().jobs == len(gone)
    assert set(left()) == kept


def test_filters_narrow_the_settings(connection, retain):
    retain(done=MONTH, dead=MONTH)
    first, (second,) = old_jobs(connection), old_jobs(connection, status="dead")
    assert prune(job_type="another").jobs == prune(queue="another").jobs == 0
    assert prune(status="dead").jobs == 1
    assert left() == first
    with pytest.raises(LeaseQueueError, match="says nothing about cancelled jobs"):
        prune(status="cancelled")
    assert second not in left()


def test_rows_of_workers_that_are_gone(connection, retain):
    """I11: a thousand workers that were killed."""
    Worker.objects.bulk_create([Worker(name=f"w:{n}") for n in range(1000)])
    move_seen(connection, "name <> 'w:7'", days=8)
    run(connection, "UPDATE leasequeue_worker SET stopped_at = seen_at WHERE name = 'w:8'")
    assert prune(older_than=0).workers == prune(queue="q").workers == 0
    retain(dead=0)
    assert prune(status="dead").workers == 0
    assert prune(dry_run=True).workers == prune(batch=400).workers == 999
    assert list(Worker.objects.values_list("name", flat=True)) == ["w:7"]
    retain(workers=DAY)
    move_seen(connection, "id > 0", days=2)
    retain(workers=None)
    assert prune().workers == 0
    retain(workers=DAY)
    assert prune().workers == 1


def move_seen(connection, where, *, days):
    dialect = dialect_for(connection)
    run(
        connection,
        f"UPDATE leasequeue_worker SET seen_at = {dialect.later} WHERE {where}",
        [dialect.span(-days * DAY)],
    )


def test_bulk_runs_that_are_over(connection, retain):
    over, under_way = (BulkRun.objects.create(operation="requeue") for _ in range(2))
    BulkRun.objects.filter(pk=over.pk).update(finished_at=UtcNow())
    assert prune().bulk_runs == 0
    retain(bulk_runs=0)
    assert prune().bulk_runs == 1
    assert list(BulkRun.objects.values_list("pk", flat=True)) == [under_way.pk]


# Refused


@pytest.mark.parametrize(
    "options",
    [
        {"status": "failed"},
        {"status": ""},
        {"status": []},
        {"job_type": []},
        {"older_than": -1},
        {"older_than": float("nan")},
        {"older_than": "30d"},
        {"older_than": True},
        {"older_than": timedelta(days=40_000)},
        {"batch": 0},
        {"batch": 5001},
        {"batch": 1.5},
        {"limit": 0},
        {"pause": -1},
        {"pause": "1"},
        {"archive": "/nowhere/at/all.gz"},
    ],
    ids=repr,
)
def test_wrong_input_is_refused_before_anything_goes(connection, options):
    ids = old_jobs(connection, 2)
    with pytest.raises(LeaseQueueError):
        prune(**{"older_than": 0, **options})
    assert left() == ids


def test_inside_a_transaction(connection):
    old_jobs(connection)
    with transaction.atomic(), pytest.raises(LeaseQueueError, match="outside of transactions"):
        prune(older_than=0)


def test_many_jobs_of_one_moment(connection):
    ids = old_jobs(connection, 23) + old_jobs(connection, 9, days=41)
    kept = old_jobs(connection, 3, queue="kept")
    batches = []
    assert prune(older_than=MONTH, queue="default", batch=5, progress=batches.append).jobs == 32
    assert (left(), sum(batches)) == (kept, len(ids))
