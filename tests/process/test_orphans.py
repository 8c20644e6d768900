"""Programs that a handler starts end with its child, and that ends with its worker."""

from __future__ import annotations

import os
import signal

import pytest

from django_leasequeue import enqueue
from tests.process import rows
from tests.process.processes import descendants, is_alive, wait_gone

TIMING = ("--lease", "6", "--kill-after", "0.3", "--grace", "0.3")


@pytest.fixture
def started(queue_db, worker_process, gate):
    """Run a handler that has started a program; return worker, job and the program's pid."""
    programs = []

    def start(then, **options):
        payload = {"gate": str(gate("a")), "then": then}
        job_id = enqueue("hang.starts_a_program", payload, max_attempts=1, **options).id
        worker = worker_process(*TIMING)
        program = gate("a").wait_number("program")
        gate("a").wait(f"started-{job_id}")
        assert is_alive(program)
        programs.append(program)
        return worker, job_id, program

    yield start
    for program in filter(is_alive, programs):
        os.kill(program, signal.SIGKILL)  # the worker's log would stay open for its sake


def test_after_the_kill_of_a_time_limit(started):
    """F9"""
    worker, job_id, program = started("passes_over_all", timeout=0.5)
    worker.wait_event("job_timed_out", job_id=job_id)
    wait_gone(program)
    worker.signal(signal.SIGTERM)
    assert worker.wait() == 0


@pytest.mark.parametrize("then", ["sleep", "passes_over_all"])
def test_after_an_orderly_end(started, then):
    """F9: whether the handler let itself be interrupted or not."""
    worker, job_id, program = started(then)
    worker.signal(signal.SIGTERM)
    assert worker.wait() == 0
    wait_gone(program)
    assert rows.outcomes(job_id) == ["released"]


@pytest.mark.leaves_reserved
@pytest.mark.parametrize("then", ["sleep", "passes_over_all", "holds_the_gil"])
def test_after_a_worker_that_was_killed(started, then):
    """F9: control can do nothing then; the children and the forkserver end by themselves."""
    worker, _job_id, program = started(then)
    processes = descendants(worker.pid)
    assert program in processes
    worker.signal(signal.SIGKILL)
    assert worker.wait() == -signal.SIGKILL
    for pid in processes:
        wait_gone(pid)
