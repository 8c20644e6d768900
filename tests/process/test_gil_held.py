"""Jobs that outlast their lease many times over, in Python and in C, keep it and run once."""

from __future__ import annotations

import signal
from datetime import timedelta

import pytest

from django_leasequeue import enqueue
from tests.process import rows
from tests.process.processes import is_alive

LEASE = 1.5
LIMIT = 3.5 * LEASE


@pytest.mark.only_on("mariadb", "mysql", "postgres")
def test_a_lease_shorter_than_its_job_is_kept(queue_db, worker_process, gate):
    """B12, F3: ten leases in a sleep; three with the interpreter's lock held, until the kill."""
    payload = {"gate": str(gate("a"))}
    long = enqueue("hang.sleep", {**payload, "seconds": 10 * LEASE}, timeout=20 * LEASE).id
    stuck = enqueue("hang.holds_the_gil", payload, timeout=LIMIT, max_attempts=1).id
    worker = worker_process("--lease", str(LEASE), "--processes", "2")
    gate("a").wait(f"started-{stuck}")
    gate("a").wait(f"started-{long}")
    rival = worker_process("--lease", str(LEASE))
    rival.wait_event("worker_started")

    ended = worker.wait_event("job_timed_out", job_id=stuck)
    assert 3 * LEASE < LIMIT <= ended["elapsed_ms"] / 1000 < LIMIT + 2
    stored = rows.job(stuck)
    assert (stored.status, rows.outcomes(stuck)) == ("dead", ["timed_out"])
    assert stored.last_error.endswith("its process was killed")
    assert not gate("a").said(f"JobTimeout-{stuck}")
    pid = gate("a").wait_number("pid")
    assert not is_alive(pid)
    rival.signal(signal.SIGTERM)
    assert rival.wait() == 0

    after = enqueue("hang.pid").id
    worker.wait_event("job_completed", job_id=after)
    worker.wait_event("job_completed", job_id=long)
    assert rows.job(after).result not in (pid, rows.job(long).result)
    assert (rows.job(long).attempts, rows.outcomes(long)) == (1, ["completed"])
    assert rows.job(long).updated_at - rows.job(long).claimed_at > timedelta(seconds=10 * LEASE)
    worker.signal(signal.SIGTERM)
    assert worker.wait() == 0
    for one in (worker, rival):
        assert not one.named("leases_recovered")
        assert not one.named("job_lease_lost")
    assert not rival.named("job_claimed")
