"""What ends a handler, its thread or its process never ends the worker, nor another job twice."""

from __future__ import annotations

import signal

import pytest

from django_leasequeue import enqueue
from django_leasequeue.models import JobAttempt
from tests.process import rows
from tests.process.processes import is_alive, wait_gone

EXITS = {
    "SystemExit": "SystemExit",
    "sys.exit": "SystemExit",
    "KeyboardInterrupt": "KeyboardInterrupt",
    "GeneratorExit": "GeneratorExit",
    "CancelledError": "CancelledError",
    "RecursionError": "RecursionError",
    "MemoryError": "MemoryError",
}
DEATHS = {
    "os._exit": "exited with code 3",
    "SIGSEGV": "was ended by SIGSEGV",
    "SIGKILL": "was ended by SIGKILL",
}
#: A signal that only a worker is to react to: its child passes it over.
IGNORED = "SIGTERM"


@pytest.mark.parametrize("threads", ["1", "2"])
def test_every_way_out_of_a_handler_in_a_child(queue_db, worker_process, threads):
    """F5: exceptions of any kind are failures; only the end of the process is a crash."""
    job_types = ("die.ends", "die.ends_async")
    failing = {
        enqueue(job_type, {"how": how}, max_attempts=1).id: (job_type, how)
        for job_type in job_types
        for how in EXITS
    }
    passing = [enqueue(job_type, {"how": IGNORED}).id for job_type in job_types]
    before, after = enqueue("hang.pid", priority=1).id, enqueue("hang.pid", priority=-1).id
    worker = worker_process("--threads", threads, "--drain", "--log-format", "json")
    assert worker.wait() == 0
    for job_id, (job_type, how) in failing.items():
        stored = rows.job(job_id)
        assert rows.outcomes(job_id) == ["failed"], (job_type, how)
        assert stored.last_error.split(":")[0] == EXITS[how], (job_type, how)
        assert (stored.status, stored.crashes) == ("dead", 0), (job_type, how)
    assert [rows.job(job_id).status for job_id in passing] == ["done", "done"]
    assert rows.job(before).result == rows.job(after).result != worker.pid
    assert worker.lines == []


def test_a_process_that_ends_is_a_crash_and_says_how(queue_db, worker_process):
    """F5: with the exit code, or the signal's name; the next job runs in a new child."""
    ids = {enqueue("die.ends", {"how": how}, max_attempts=1).id: how for how in DEATHS}
    worker = worker_process("--drain")
    assert worker.wait() == 0
    for job_id, how in ids.items():
        attempt = JobAttempt.objects.get(job_id=job_id)
        assert attempt.outcome == "crashed", how
        assert attempt.error_text == f"JobCrashed: the process that ran the job {DEATHS[how]}"
        assert (rows.job(job_id).status, rows.job(job_id).crashes) == ("dead", 1), how
        assert worker.named("job_crashed", job_id=job_id, error=attempt.error_text), how


def test_threads_that_a_handler_leaves_alive_hold_nothing_up(queue_db, worker_process):
    """F5: neither the child's replacement nor the worker's end waits for them."""
    ids = [enqueue("die.leaves_threads").id for _ in range(3)]
    worker = worker_process("--max-jobs-per-child", "2")
    for job_id in ids:
        worker.wait_event("job_completed", job_id=job_id)
    first, second, third = (rows.job(job_id).result for job_id in ids)
    assert first == second != third
    wait_gone(first)
    assert is_alive(third)
    worker.signal(signal.SIGTERM)
    assert worker.wait(5) == 0
    wait_gone(third)


def test_a_job_that_always_crashes_runs_alone_and_ends_dead(queue_db, worker_process, gate):
    """F8, F5: after its crashes, not its attempts; others go on meanwhile, in other children."""
    waiting = enqueue("proc.wait", {"gate": str(gate("other"))}).id
    crashing = enqueue("die.dies", {"gate": str(gate("a")), "runs": 9}, max_attempts=9).id
    worker = worker_process("--processes", "3")
    gate("other").wait("started")
    pids = []
    for run in (1, 2, 3):
        pid = gate("a").wait_number(f"run-{run}-pid")
        beside = enqueue("hang.pid").id
        if run > 1:  # in its first run it was where any job may be
            worker.wait_event("job_completed", job_id=beside)
            assert rows.job(beside).result not in (pid, *pids)
            assert rows.job(crashing).status == "reserved"
        pids.append(pid)
        gate("a").say(f"go-{run}")
        worker.wait_event("job_crashed", job_id=crashing, attempt=run)
    worker.wait_event("job_dead", job_id=crashing)
    assert len({*pids}) == 3
    stored = rows.job(crashing)
    assert (stored.status, stored.attempts, stored.crashes) == ("dead", 3, 3)
    assert rows.outcomes(crashing) == ["crashed"] * 3
    gate("other").say("go")
    worker.wait_event("job_completed", job_id=waiting, attempt=1)
    worker.signal(signal.SIGTERM)
    assert worker.wait() == 0


def test_the_lone_child_of_a_job_that_crashed_ends_with_it(queue_db, worker_process, gate):
    """F5: it is given no other job."""
    crashing = enqueue("die.dies", {"gate": str(gate("a")), "runs": 1}).id
    gate("a").say("go-1")
    gate("a").say("go-2")
    worker = worker_process()
    worker.wait_event("job_completed", job_id=crashing, attempt=2)
    lone = rows.job(crashing).result
    wait_gone(lone)
    for _ in range(3):
        after = enqueue("hang.pid").id
        worker.wait_event("job_completed", job_id=after)
        assert rows.job(after).result != lone
    worker.signal(signal.SIGTERM)
    assert worker.wait() == 0


@pytest.mark.parametrize("threads", ["2", "4"])
def test_a_child_takes_all_its_jobs_with_it(queue_db, worker_process, gate, threads):
    """F5: each of them crashed, and each of them runs again, alone."""
    gates = [gate(f"job-{number}") for number in range(int(threads))]
    ids = [enqueue("die.dies", {"gate": str(one), "runs": 0}).id for one in gates[1:]]
    ids.insert(0, enqueue("die.dies", {"gate": str(gates[0]), "runs": 1}, max_attempts=2).id)
    worker = worker_process("--threads", threads)
    shared = {one.wait_number("run-1-pid") for one in gates}
    assert len(shared) == 1
    for one in gates:
        one.say("go-2")
    gates[0].say("go-1")
    for job_id in ids:
        worker.wait_event("job_crashed", job_id=job_id, attempt=1)
        worker.wait_event("job_completed", job_id=job_id, attempt=2)
        assert rows.outcomes(job_id) == ["crashed", "completed"]
    pids = {rows.job(job_id).result for job_id in ids}
    assert len(pids) == int(threads)
    assert not pids & shared
    worker.signal(signal.SIGTERM)
    assert worker.wait() == 0


def test_a_kill_for_one_gives_the_others_back(queue_db, worker_process, gate):
    """F3, F5: the one that was meant has timed out; the others lose no attempt by it."""
    payload = {"gate": str(gate("a"))}
    meant = enqueue("hang.passes_over_all", payload, timeout=0.5, max_attempts=1).id
    others = [enqueue("die.dies", {"gate": str(gate(name)), "runs": 0}).id for name in "bc"]
    worker = worker_process("--threads", "3", "--kill-after", "0.3")
    worker.wait_event("job_timed_out", job_id=meant)
    for name, job_id in zip("bc", others, strict=True):
        assert gate(name).numbers("run-1-pid")
        worker.wait_event("job_released", job_id=job_id, attempt=1)
        gate(name).say("go-2")
        worker.wait_event("job_completed", job_id=job_id, attempt=1)
        assert (rows.job(job_id).attempts, rows.job(job_id).crashes) == (1, 0)
        assert rows.outcomes(job_id) == ["released", "completed"]
    assert (rows.job(meant).status, rows.outcomes(meant)) == ("dead", ["timed_out"])
    worker.signal(signal.SIGTERM)
    assert worker.wait() == 0
