"""What a handler is told of its time and its place, over several runs in different processes."""

from __future__ import annotations

import signal

from django_leasequeue import enqueue
from tests.process import rows


def test_a_checkpoint_outlives_a_release_a_crash_and_a_failure(queue_db, worker_process, gate):
    """E8, B5: each run finds what the one before has saved; `stopping` is told in time."""
    job_id = enqueue("die.keeps_its_place", {"gate": str(gate("a"))}, max_attempts=9).id
    first = worker_process("--grace", "2", "--kill-after", "0.3")
    gate("a").wait("run-1")
    first.signal(signal.SIGTERM)
    gate("a").wait("stopping")
    assert first.wait() == 0
    assert rows.outcomes(job_id) == ["released"]

    second = worker_process("--drain")
    assert second.wait() == 0
    assert rows.outcomes(job_id) == ["released", "crashed", "failed", "completed"]
    stored = rows.job(job_id)
    assert (stored.status, stored.attempts, stored.crashes, stored.claims) == ("done", 3, 1, 4)
    assert stored.result == [[1, 1], [2, 1], [3, 2], [4, 3]]  # of each run its claim and attempt
