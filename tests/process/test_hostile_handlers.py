"""Handlers that fork, that leave the process changed, that raise what cannot even be described."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from django_leasequeue import enqueue
from tests.process import rows
from tests.process.processes import descendants, is_alive, wait_gone
from tests.waiting import wait_until

SETTINGS = """
from tests.process.settings import *

INSTALLED_APPS = [*INSTALLED_APPS, "attack_app"]
"""
JOBS = """
import os, signal, subprocess, sys, threading, time
from django_leasequeue import Reject, Skip, job
from tests.process.gate import Gate


class NoReason(Skip):
    reason = None

    def __init__(self):
        pass


def _hook(context, error):
    gate = Gate(context.payload["gate"])
    gate.say(f"hook-{context.job_id}")
    time.sleep(0.5)


@job("attack.fork", takes_context=True)
def fork(context, gate):
    copy = os.fork() == 0
    Gate(gate).say(f"{'copy' if copy else 'own'}-{os.getpid()}")
    if not copy:
        Gate(gate).wait("go", timeout=30)


@job("attack.ignore_children")
def ignore_children():
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)


@job("attack.false")
def false():
    return subprocess.run(["false"], check=False).returncode


@job("attack.no_reason")
def no_reason():
    raise NoReason


@job("attack.never_ends")
def never_ends():
    threading.Thread(target=time.sleep, args=(3600,)).start()
    sys.stdout.close()


@job("attack.hooked", failed=_hook, max_attempts=1)
def hooked(gate):
    raise Reject("at once")


@job("attack.note", takes_context=True)
def note(context, gate):
    Gate(gate).say(f"note-{context.job_id}")


@job("attack.swallows", takes_context=True)
def swallows(context, gate):
    Gate(gate).say(f"run-{context.claims}-pid-{os.getpid()}")
    while context.claims == 1:
        try:
            time.sleep(3600)
        except BaseException:
            pass
"""


@pytest.fixture
def attacked(queue_db, worker_process, process_environment, tmp_path: Path):
    app = tmp_path / "path" / "attack_app"
    app.mkdir(parents=True)
    (app / "__init__.py").touch()
    (app / "jobs.py").write_text(JOBS)
    (app.parent / "attack_settings.py").write_text(SETTINGS)
    path = f"{app.parent}{os.pathsep}{process_environment['PYTHONPATH']}"
    env = {"PYTHONPATH": path, "DJANGO_SETTINGS_MODULE": "attack_settings"}
    return lambda *args: worker_process("--grace", "1", "--kill-after", "0.3", *args, env=env)


def stop(worker):
    worker.signal(signal.SIGTERM)
    assert worker.wait() == 0


def test_a_forked_copy_speaks_for_nobody(attacked, gate):
    """The copy's return is not the job's, and it runs no other job."""
    job_id = enqueue("attack.fork", {"gate": str(gate("a"))}).id
    worker = attacked("--lease", "6")
    copy = gate("a").wait_number("copy")
    wait_gone(copy)
    assert rows.job(job_id).status == "reserved"
    gate("a").say("go")
    worker.wait_event("job_completed", job_id=job_id)
    stop(worker)


def test_signal_handlers_do_not_reach_the_next_job(attacked):
    """With SIGCHLD ignored, `subprocess` takes every failure for a success."""
    enqueue("attack.ignore_children")
    job_id = enqueue("attack.false").id
    assert attacked("--drain").wait() == 0
    assert rows.job(job_id).result == 1


@pytest.mark.parametrize("threads", ["1", "4"])
def test_an_end_that_cannot_be_told_is_an_end(attacked, threads):
    job_id = enqueue("attack.no_reason", max_attempts=1).id
    worker = attacked("--threads", threads)
    wait_until(lambda: rows.job(job_id).status != "reserved" and rows.outcomes(job_id), timeout=15)
    stop(worker)


def test_a_retired_child_ends(attacked):
    """A handler's thread, and an error in its last words, must not keep it."""
    ids = [enqueue("attack.never_ends").id for _ in range(4)]
    worker = attacked("--max-jobs-per-child", "1")
    for job_id in ids:
        worker.wait_event("job_completed", job_id=job_id)
    # Control's helper, its forkserver, the child at work and one that may be on its way out.
    wait_until(lambda: len(descendants(worker.pid)) <= 4, timeout=15)
    stop(worker)


def test_hooks_leave_room_for_jobs(attacked, gate):
    """Many deaths at once do not hold up those that live."""
    for _ in range(10):
        enqueue("attack.hooked", {"gate": str(gate("a"))})
    assert attacked("--max-jobs", "10").wait() == 0
    had = len(gate("a").numbers("hook"))
    worker = attacked()
    wait_until(lambda: len(gate("a").numbers("hook")) > had, timeout=30)
    job_id = enqueue("attack.note", {"gate": str(gate("a"))}).id
    worker.wait_event("job_completed", job_id=job_id)
    assert len(gate("a").numbers("hook")) < had + 4
    stop(worker)


@pytest.mark.leaves_reserved
def test_programs_end_when_the_workers_whole_group_is_killed(
    queue_db, process_environment, gate, tmp_path
):
    """`kill -9 -- -pgid`, Ctrl-\\ in a terminal, `timeout -s KILL`: the forkserver dies as well."""
    enqueue("hang.starts_a_program", {"gate": str(gate("a"))})
    manage = Path(__file__).resolve().parents[2] / "testproject" / "manage.py"
    with subprocess.Popen(
        [sys.executable, str(manage), "runworker"],
        env=process_environment,
        start_new_session=True,
        stderr=subprocess.DEVNULL,
    ) as worker:
        program = gate("a").wait_number("program")
        os.killpg(worker.pid, signal.SIGKILL)
    try:
        wait_gone(program)
    finally:
        if is_alive(program):
            os.kill(program, signal.SIGKILL)


def test_a_handler_that_passes_over_all_ends_with_its_lease_while_control_stands_still(
    attacked, gate
):
    """Its child has to see to that, before another worker has the job."""
    job_id = enqueue("attack.swallows", {"gate": str(gate("a"))}).id
    first = attacked("--lease", "2")
    child = wait_until(lambda: gate("a").numbers("run-1-pid"), timeout=30)[0]
    first.signal(signal.SIGSTOP)
    second = attacked("--lease", "2")
    wait_until(lambda: gate("a").numbers("run-2-pid"), timeout=30)
    alive = is_alive(child)
    first.signal(signal.SIGCONT)
    second.wait_event("job_completed", job_id=job_id)
    stop(second)
    stop(first)
    assert not alive
