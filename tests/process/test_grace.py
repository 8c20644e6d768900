"""Stopping a worker whose handlers never end: after the grace, or at a second signal."""

from __future__ import annotations

import signal
import time

import pytest

from django_leasequeue import enqueue
from tests.process import rows
from tests.process.processes import descendants, wait_gone

GRACE = 3
KILL_AFTER = 0.5
#: "At once", and what an orderly end may take, on a machine that is busy with other things.
SOON = 8
on_servers = pytest.mark.only_on("mariadb", "mysql", "postgres")

#: What the handlers do, and with what the worker runs all of them at the same time.
CREWS = {
    "children": (
        ["--processes", "5"],
        ["hang.sleep", "hang.passes_over_all", "hang.holds_the_gil", "co.sleep", "proc.wait"],
    ),
    "threads": (
        ["--threads", "4"],
        ["hang.sleep", "co.sleep", "co.waits_in_a_thread", "proc.wait"],
    ),
    "solo": (["--solo"], ["hang.sleep"]),
    "solo coroutine": (["--solo"], ["co.sleep"]),
}
#: How each job learns of it, where its thread is one that an interrupt wakes.
ENDINGS = {
    "hang.sleep": "JobInterrupted",
    "co.sleep": "CancelledError",
}


@pytest.fixture
def running(queue_db, worker_process, gate):
    """Start a worker of a kind; return it and the ids of the jobs that it runs."""

    def start(crew, grace):
        options, job_types = CREWS[crew]
        payload = {"gate": str(gate("a"))}
        ids = {enqueue(job_type, payload).id: job_type for job_type in job_types}
        timing = ("--lease", "20", "--grace", str(grace), "--kill-after", str(KILL_AFTER))
        worker = worker_process(*timing, *options)
        for job_id, job_type in ids.items():
            gate("a").wait("started" if job_type == "proc.wait" else f"started-{job_id}")
        return worker, ids

    return start


@pytest.mark.parametrize(
    "crew",
    [pytest.param(name, marks=() if "solo" in name else on_servers) for name in CREWS],
)
def test_handlers_that_never_end_are_given_the_grace(running, gate, crew):
    """F7: then they are interrupted, killed if need be, and their jobs are ready again."""
    worker, ids = running(crew, GRACE)
    processes = descendants(worker.pid)
    began = time.monotonic()
    worker.signal(signal.SIGTERM)
    assert worker.wait(GRACE + SOON) == 0
    assert time.monotonic() - began >= GRACE
    assert_released(worker, ids, gate, processes, threads=crew == "threads")


@pytest.mark.parametrize(
    ("crew", "second"),
    [
        pytest.param("children", "SIGTERM", marks=on_servers),
        pytest.param("children", "SIGINT", marks=on_servers),
        pytest.param("threads", "SIGTERM", marks=on_servers),
        ("solo", "SIGINT"),
        ("solo coroutine", "SIGINT"),
    ],
)
def test_a_second_signal_ends_them_at_once(running, gate, crew, second):
    """F7: the grace is cut short."""
    worker, ids = running(crew, 300)
    processes = descendants(worker.pid)
    worker.signal(signal.SIGTERM)
    if second == "SIGTERM":  # two signals of one number that have not been seen are one
        gate("a").wait("stopping")
    worker.signal(getattr(signal, second))
    assert worker.wait(SOON) == 0
    assert_released(worker, ids, gate, processes, threads=crew == "threads")


def assert_released(worker, ids, gate, processes, *, threads):
    assert worker.named("worker_stopped")
    assert worker.lines == []
    for job_id, job_type in ids.items():
        stored = rows.job(job_id)
        assert (stored.status, stored.attempts, stored.claims) == ("ready", 0, 1), job_type
        assert (stored.lease_token, rows.outcomes(job_id)) == (None, ["released"]), job_type
        assert worker.named("claim_released_on_shutdown", job_id=job_id), job_type
        # In a thread that is not the main one nothing wakes a sleep: it was killed.
        if job_type in ENDINGS and not (job_type == "hang.sleep" and threads):
            assert gate("a").said(f"{ENDINGS[job_type]}-{job_id}"), job_type
    for pid in processes:
        wait_gone(pid)
