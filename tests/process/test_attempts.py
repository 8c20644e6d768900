"""What an attempt costs and in which order jobs get theirs, through one child of a real worker."""

from __future__ import annotations

import signal

import pytest

from django_leasequeue import enqueue, enqueue_many
from django_leasequeue.models import Job, JobAttempt
from tests.process import rows

pytestmark = pytest.mark.only_on("mariadb", "mysql", "postgres")


def stop(worker):
    worker.signal(signal.SIGTERM)
    assert worker.wait() == 0


def test_ten_deployments_cost_a_job_no_attempt_and_a_twenty_first_does(
    queue_db, worker_process, gate
):
    """E8: SIGTERM with grace 0, ten times during one job of three attempts; bounded by twenty."""
    job_id = enqueue("proc.wait", {"gate": str(gate("a"))}, max_attempts=3).id

    def deployed(claim):
        worker = worker_process("--grace", "0", *(("--solo",) if claim % 2 else ()))
        gate("a").wait(f"started-{claim}")
        stop(worker)
        assert worker.named("claim_released_on_shutdown", job_id=job_id)
        return rows.job(job_id)

    for claim in range(1, 11):
        stored = deployed(claim)
        assert (stored.status, stored.attempts, stored.releases) == ("ready", 0, claim)
        assert stored.crashes == 0
    with queue_db.cursor() as cursor:  # ten more of the same
        cursor.execute("UPDATE leasequeue_job SET releases = 20")
    assert deployed(11).attempts == 1
    gate("a").say("go")
    assert worker_process("--drain").wait() == 0
    stored = rows.job(job_id)
    assert (stored.status, stored.attempts, stored.crashes) == ("done", 2, 0)
    assert rows.outcomes(job_id) == ["released"] * 11 + ["completed"]


def test_an_always_failing_job_runs_as_often_as_it_may(queue_db, worker_process):
    """E10: once for 1, three times for 3, and the log agrees; 0 is refused."""
    with pytest.raises(ValueError, match="max_attempts"):
        enqueue("proc.fail", max_attempts=0)
    allowed = {enqueue("proc.fail", max_attempts=count).id: count for count in (1, 3)}
    worker = worker_process("--drain")
    assert worker.wait() == 0
    for job_id, count in allowed.items():
        assert rows.outcomes(job_id) == ["failed"] * count
        assert (rows.job(job_id).status, rows.job(job_id).attempts) == ("dead", count)
        assert [e["attempt"] for e in worker.named("job_failed", job_id=job_id)] == [
            *range(1, count + 1)
        ]
        assert len(worker.named("job_dead", job_id=job_id, attempt=count)) == 1


def test_long_jobs_under_a_short_lease_take_one_attempt_each(queue_db, worker_process):
    """A19: claimed ahead after short ones, for more seconds of work than a lease has."""
    enqueue_many([("proc.note", {}, {})] * 190)
    slow = [enqueue("outages.slow", {"seconds": 0.4}, max_attempts=3).id for _ in range(12)]
    worker = worker_process("--lease", "1.5", "--drain")
    assert worker.wait(60) == 0
    assert not worker.named("leases_recovered")
    assert not worker.named("job_lease_lost")
    assert [rows.outcomes(job_id) for job_id in slow] == [["completed"]] * len(slow)
    kept = Job.objects.filter(pk__in=slow).values_list("status", "attempts", "crashes")
    assert {*kept} == {("done", 1, 0)}


def test_larger_priorities_first_and_the_older_first_within_one(queue_db, worker_process):
    """A20: a hundred jobs of one moment, in one bulk call."""
    priorities = [(7 * n) % 5 - 2 for n in range(100)]
    jobs = enqueue_many([("proc.note", {}, {"priority": one}) for one in priorities])
    worker = worker_process("--drain")
    assert worker.wait() == 0
    ran = [event["job_id"] for event in worker.named("job_completed")]
    expected = sorted(zip(priorities, [one.id for one in jobs], strict=True), key=by_turn)
    assert ran == [job_id for _priority, job_id in expected]


def by_turn(job):
    priority, job_id = job
    return (-priority, job_id)


def test_receivers_and_hooks_that_raise_change_nothing(queue_db, worker_process):
    """C14: `jobs_claimed` and the `failed` hook, both in a child."""
    raising = {"PROCESS_TEST_RAISING_RECEIVER": "1"}
    buried = enqueue("outages.buried", max_attempts=1).id
    worker = worker_process(env=raising)
    worker.wait_event("job_dead", job_id=buried)
    reports = [enqueue("proc.report").id for _ in range(3)]
    for job_id in reports:
        worker.wait_event("job_completed", job_id=job_id, attempt=1)
    worker.wait_event("burial_failed", job_id=buried)
    after = enqueue("proc.report").id
    worker.wait_event("job_completed", job_id=after, attempt=1)
    stop(worker)
    assert rows.outcomes(buried) == ["failed"]
    assert rows.job(buried).status == "dead"
    assert not JobAttempt.objects.exclude(job_id=buried).exclude(outcome="completed").exists()
