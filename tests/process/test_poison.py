"""Jobs that kill their worker end as dead letters; jobs that exit only fail."""

from __future__ import annotations

import signal

from django_leasequeue import enqueue
from django_leasequeue.models import Job
from tests.process import rows

LEASE = ("--lease", "1.2")
EXITS = ("SystemExit", "KeyboardInterrupt", "GeneratorExit")


def test_an_exhausted_job_is_dead(queue_db, worker_process):
    failing = enqueue("proc.fail", max_attempts=3).id
    worker = worker_process("--drain")
    assert worker.wait() == 0
    stored = rows.job(failing)
    assert (stored.status, stored.attempts, stored.last_error) == ("dead", 3, "ValueError")
    assert rows.outcomes(failing) == ["failed"] * 3
    assert len(worker.named("job_dead", job_id=failing, attempt=3)) == 1


def test_a_job_that_kills_its_workers_is_dead_after_its_crashes(queue_db, worker_process):
    killer = enqueue("proc.kill", max_attempts=10).id
    with queue_db.cursor() as cursor:
        cursor.execute("UPDATE leasequeue_job SET max_crashes = 2")
    for _ in range(2):
        assert worker_process(*LEASE, "--solo").wait() == -signal.SIGKILL
    innocent = enqueue("proc.note").id
    last = worker_process(*LEASE, "--drain")
    assert last.wait() == 0
    stored = rows.job(killer)
    assert (stored.status, stored.attempts, stored.crashes) == ("dead", 2, 2)
    assert stored.last_error == "Lease expired after final attempt"
    assert rows.outcomes(killer) == ["expired", "expired"]
    assert last.named("job_dead", job_id=killer)
    assert rows.job(innocent).status == "done"


def test_a_handler_that_exits_has_failed_and_the_worker_goes_on(queue_db, worker_process):
    exits = {enqueue("proc.exit", {"name": name}, max_attempts=1).id: name for name in EXITS}
    after = enqueue("proc.note").id
    worker = worker_process("--drain")
    assert worker.wait() == 0
    assert worker.lines == []
    errors = Job.objects.filter(status="dead").values_list("id", "last_error")
    assert dict(errors) == exits
    assert rows.job(after).status == "done"
