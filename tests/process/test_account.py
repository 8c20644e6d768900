"""A worker and an enqueuer under an account that may SELECT, INSERT and UPDATE alone."""

from __future__ import annotations

import signal

import pytest

from django_leasequeue import enqueue
from django_leasequeue.models import Job
from tests.process import rows
from tests.waiting import wait_until

pytestmark = pytest.mark.only_on("mariadb", "mysql", "postgres")

LEASE = ("--lease", "1.5")


def test_a_whole_life_needs_no_more(least_account, queue_db, worker_process, manage, gate):
    environment = least_account.environment

    def printed(*arguments):
        ended = manage(*arguments, env=environment)
        assert (ended.returncode, ended.stderr) == (0, "")
        return ended.stdout.strip()

    # Enqueue, the second time a duplicate; release before the handler.
    ids = [int(printed("enqueue_report", "acme", "2042-01")) for _ in range(2)]
    assert ids[0] == ids[1]
    paused = worker_process(env={**environment, "WORKER_TEST_POST_CLAIM_PAUSE_MS": "1000"})
    wait_until(lambda: rows.job(ids[0]).status == "reserved")
    paused.signal(signal.SIGTERM)
    assert paused.wait() == 0
    paused.wait_event("claim_released_on_shutdown")
    # Renew, then crash.
    waiting = enqueue("proc.wait", {"gate": str(gate("a"))}, priority=1).id
    crashed = worker_process(*LEASE, env=environment)
    gate("a").wait("started")
    lease_until = rows.job(waiting).lease_until
    wait_until(lambda: rows.job(waiting).lease_until > lease_until)
    crashed.signal(signal.SIGKILL)
    assert crashed.wait() == -signal.SIGKILL
    # Recover, complete, fail, retry, die, bury.
    gate("a").say("go")
    dead = enqueue("proc.fail", max_attempts=2).id
    worker = worker_process(*LEASE, "--drain", env=environment)
    assert worker.wait() == 0
    assert rows.outcomes(ids[0]) == ["completed"]
    assert rows.outcomes(waiting) == ["expired", "completed"]
    assert (rows.job(dead).status, rows.outcomes(dead)) == ("dead", ["failed"] * 2)
    # Requeue.
    code = f"from django_leasequeue import requeue; print(requeue({dead}))"
    assert printed("shell", "--no-imports", "-c", code) == f"[{dead}]"
    assert worker_process(*LEASE, "--drain", env=environment).wait() == 0
    assert (rows.job(dead).status, rows.outcomes(dead)) == ("dead", ["failed"] * 4)


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM leasequeue_job",
        "DELETE FROM leasequeue_jobattempt",
        "DELETE FROM generated_reports",
        "TRUNCATE TABLE leasequeue_job",
        "ALTER TABLE leasequeue_job ADD COLUMN extra int",
        "DROP TABLE leasequeue_jobeffect",
        "CREATE TABLE leasequeue_extra (id int)",
    ],
)
def test_the_account_may_do_nothing_else(least_account, queue_db, statement):
    enqueue("proc.note")
    refusal = pytest.raises(queue_db.Database.Error, match=r"(?i)denied|must be owner")
    with rows.raw_cursor(queue_db, **least_account.login) as cursor, refusal:
        cursor.execute(statement)
    assert Job.objects.count() == 1
