"""Control, the forkserver or the whole group is ended: no process stays, and no job is lost."""

from __future__ import annotations

import os
import signal
import time
from datetime import UTC, datetime, timedelta

import pytest

from django_leasequeue import enqueue
from django_leasequeue.models import JobAttempt
from tests.faults.tree import children_of, forkserver_of, tree_of, wait_gone
from tests.process import rows

pytestmark = pytest.mark.only_on("mariadb", "mysql", "postgres")

SECONDS = 2.0
LEASE = ("--lease", str(SECONDS))
#: From the end of a lease on: a recovery tick and an idle worker's poll. Then comes a child for
#: each job alone, which takes as long as this machine takes for such things now.
RECOVERY = SECONDS / 12 + 1
GONE_SECONDS = 5


def test_nothing_outlives_a_killed_control_and_its_jobs_run_again(queue_db, worker_process, gate):
    """B15, B20, F9: a waiting handler, one stuck in C code, one with a program of its own."""
    kinds = ("proc.wait", "outages.stuck", "outages.program")
    job_ids = [enqueue(kind, {"gate": str(gate(kind))}).id for kind in kinds]
    first = worker_process(*LEASE, "--processes", "3", "--name", "first")
    for kind in kinds:
        gate(kind).wait("started-1")
    children = children_of(first, 3)
    family = tree_of(first.pid)
    assert len(family) >= 6  # control, the forkserver, three children, a program
    began = time.monotonic()
    rival = worker_process(*LEASE, "--processes", "3", "--name", "rival")
    rival.wait_event("worker_started")
    start = max(0.5, time.monotonic() - began)
    gate("proc.wait").say("go")

    os.kill(first.pid, signal.SIGKILL)
    killed = datetime.now(UTC)
    wait_gone([*family, *children], GONE_SECONDS)
    assert first.wait() == -signal.SIGKILL
    for job_id in job_ids:
        rival.wait_event("job_completed", job_id=job_id, attempt=2)
    rival.signal(signal.SIGTERM)
    assert rival.wait() == 0
    for job_id in job_ids:
        stored = rows.job(job_id)
        assert (stored.status, stored.attempts, stored.crashes) == ("done", 2, 1)
        assert stored.last_error == ""
        lost, kept = JobAttempt.objects.filter(job_id=job_id).order_by("number")
        assert [lost.outcome, kept.outcome] == ["expired", "completed"]
        assert [one.worker.partition(":")[0] for one in (lost, kept)] == ["first", "rival"]
        assert lost.started_at < lost.finished_at <= kept.started_at < kept.finished_at
        assert kept.started_at <= killed + timedelta(seconds=SECONDS + RECOVERY + 3 * start)


def test_the_forkserver_is_killed(queue_db, worker_process, gate):
    """Its children go with it; control starts another, and counts the running job as crashed."""
    job_id = enqueue("proc.wait", {"gate": str(gate("a"))}).id
    worker = worker_process(*LEASE)
    gate("a").wait("started-1")
    (child,) = children_of(worker)
    server = forkserver_of(worker)
    server.signal(signal.SIGKILL)
    wait_gone([server, child], GONE_SECONDS)
    worker.wait_event("job_crashed", job_id=job_id, attempt=1)
    gate("a").say("go")
    another = enqueue("proc.report").id
    worker.wait_event("job_completed", job_id=another, attempt=1)
    worker.signal(signal.SIGTERM)
    assert worker.wait() == 0
    assert worker.lines == []
    assert rows.outcomes(job_id)[0] == "crashed"
    assert rows.job(job_id).status in ("ready", "done")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=lambda n: n.name)
@pytest.mark.parametrize("whom", ["group", "everybody"])
def test_a_stop_signal_to_all_at_once_is_an_orderly_end(
    queue_db, worker_process, gate, whom, number
):
    """As a terminal sends it to its group, or systemd to every process of a unit."""
    job_id = enqueue("proc.wait", {"gate": str(gate("a"))}).id
    worker = worker_process(*LEASE)
    gate("a").wait("started-1")
    family = tree_of(worker.pid)
    if whom == "group":
        os.killpg(worker.pid, number)
    else:
        for one in family:
            one.signal(number)
    gate("a").wait("stopping")
    gate("a").say("go")
    assert worker.wait() == 0
    wait_gone(family)
    assert [event["event"] for event in worker.events] == [
        "worker_started",
        "job_claimed",
        "job_completed",
        "worker_stopped",
    ]
    assert worker.lines == []
    assert rows.outcomes(job_id) == ["completed"]
