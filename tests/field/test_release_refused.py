"""A claim that a stopping worker cannot give back: no handler starts, and its exit code says so."""

from __future__ import annotations

import pytest

from django_leasequeue import enqueue
from django_leasequeue.runtime import shutdown
from django_leasequeue.runtime.worker import Worker
from django_leasequeue.signals import jobs_claimed
from tests.core.arrange import job, outcomes
from tests.faults import Fault, broken_everywhere, codes_for, watching
from tests.field.workers import QUICK

#: Instead of the seconds that a worker takes to give back what has not begun.
LAST_TRIES = 0.3


@pytest.mark.leaves_reserved
def test_no_handler_starts_and_the_exit_code_is_1(connection, declare, monkeypatch):
    """S1: `claim_release_failed`, then fatal. The stop comes between claim and handler."""
    runs: list[str] = []
    declare("claimed")(lambda: runs.append("a handler"))
    monkeypatch.setattr(shutdown, "_LEAST_SECONDS", LAST_TRIES)
    made = enqueue("claimed")
    worker = Worker(**{**QUICK, "grace": LAST_TRIES})

    def stop(**arguments: object) -> None:
        worker.stop()

    refused = Fault(
        codes_for(connection)[-1], match=lambda sql: "leasequeue:settle" in sql, times=10**6
    )
    jobs_claimed.connect(stop)
    try:
        with broken_everywhere(refused), watching() as moments:
            assert worker.run() == 1
    finally:
        jobs_claimed.disconnect(stop)
    assert refused.fired
    (failed,) = moments.named("claim_release_failed")
    assert (failed["job_id"], failed["attempt"]) == (made.id, 1)
    (fatal,) = moments.named("worker_fatal")
    assert fatal["error"] == "ReleaseFailed"
    assert moments.events.index(failed) < moments.events.index(fatal)
    for event in ("job_claimed", "claim_released_on_shutdown", "worker_stopped"):
        assert not moments.named(event), event
    assert runs == []
    # Its lease runs out, and recovery takes it back.
    row = job(made.id)
    assert (row.status, row.attempts, outcomes(made.id)) == ("reserved", 1, [])
