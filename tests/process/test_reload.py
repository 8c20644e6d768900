"""`runworker --reload`: changed code runs, broken code is waited for, and nothing outlives it."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from django_leasequeue import enqueue
from tests.process import rows
from tests.waiting import wait_until

SETTINGS = """
from tests.process.settings import *
from tests.process.settings import INSTALLED_APPS

INSTALLED_APPS = [*INSTALLED_APPS, "changing"]
"""
JOBS = """
from django_leasequeue import job

@job("changing.version")
def version() -> dict[str, int]:
    return {{"version": {version}}}
"""
#: Django looks once a second; a worker boots in one or two.
RELOAD_SECONDS = 30


@pytest.fixture
def app(tmp_path: Path) -> Path:
    """A Django app whose code a test changes; the path is its module of jobs."""
    folder = tmp_path / "changing"
    folder.mkdir()
    (folder / "__init__.py").touch()
    jobs = folder / "jobs.py"
    jobs.write_text(JOBS.format(version=1))
    return jobs


@pytest.fixture
def process_environment(process_environment, app: Path, tmp_path: Path) -> dict[str, str]:
    """The environment of a project with that app."""
    (tmp_path / "changing_settings.py").write_text(SETTINGS)
    return {
        **process_environment,
        "DJANGO_SETTINGS_MODULE": "changing_settings",
        "PYTHONPATH": os.pathsep.join([str(tmp_path), process_environment["PYTHONPATH"]]),
        # A file changed twice in a second would be taken from its stale bytecode.
        "PYTHONDONTWRITEBYTECODE": "1",
    }


def version_run():
    """Return the version of the code that runs a new job."""
    job_id = enqueue("changing.version").id
    wait_until(lambda: rows.job(job_id).status == "done", timeout=RELOAD_SECONDS)
    return (rows.job(job_id).result or {})["version"]


def nobody_is_left(process):
    """Whether the group of a process that has ended is empty."""
    try:
        os.killpg(process.pid, 0)
    except ProcessLookupError:
        return True
    return False


def is_stopped(watcher, code):
    assert watcher.wait() == code
    wait_until(lambda: nobody_is_left(watcher))


def test_changed_code_runs(queue_db, worker_process, app):
    watcher = worker_process("--reload")
    first = watcher.wait_event("worker_started")
    assert first["pid"] != watcher.pid
    assert version_run() == 1
    app.write_text(JOBS.format(version=2))
    assert watcher.wait_event("worker_reloading")["path"] == str(app)
    second = watcher.wait_event("worker_started", count=2)
    assert second["pid"] != first["pid"]
    assert watcher.named("worker_stopped", pid=first["pid"])
    assert version_run() == 2
    watcher.signal(signal.SIGTERM)
    is_stopped(watcher, 0)
    assert watcher.named("worker_stopped", pid=second["pid"])
    assert watcher.lines == []


def test_broken_code_is_waited_for(queue_db, worker_process, app):
    watcher = worker_process("--reload")
    watcher.wait_event("worker_started")
    app.write_text("def")
    assert watcher.wait_event("worker_ended")["code"] == 1
    assert "SyntaxError: invalid syntax" in watcher.lines
    app.write_text(JOBS.format(version=3))
    watcher.wait_event("worker_started", count=2)
    assert version_run() == 3
    app.write_text("def")
    watcher.wait_event("worker_ended", count=2)
    watcher.signal(signal.SIGTERM)
    is_stopped(watcher, 0)


def test_a_running_handler_finishes_before_its_code_changes(queue_db, worker_process, app, gate):
    job_id = enqueue("proc.wait", {"gate": str(gate("a"))}).id
    watcher = worker_process("--reload", "--grace", "60")
    gate("a").wait("started")
    app.write_text(JOBS.format(version=2))
    gate("a").wait("stopping")
    gate("a").say("go")
    assert version_run() == 2
    assert rows.outcomes(job_id) == ["completed"]
    watcher.signal(signal.SIGTERM)
    is_stopped(watcher, 0)


@pytest.mark.parametrize("whole_group", [True, False], ids=["terminal", "watcher"])
def test_ctrl_c_drains_and_the_second_one_aborts(queue_db, worker_process, gate, whole_group):
    """A terminal sends SIGINT to the worker as well, which must not take the two for an abort."""
    job_id = enqueue("proc.wait", {"gate": str(gate("a"))}).id
    watcher = worker_process("--reload", "--grace", "60")
    gate("a").wait("started")
    press = os.killpg if whole_group else os.kill
    press(watcher.pid, signal.SIGINT)
    gate("a").wait("stopping")
    gate("a").say("go")
    is_stopped(watcher, 0)
    assert rows.outcomes(job_id) == ["completed"]

    job_id = enqueue("proc.wait", {"gate": str(gate("b"))}).id
    watcher = worker_process("--reload", "--grace", "60")
    gate("b").wait("started")
    press(watcher.pid, signal.SIGINT)
    gate("b").wait("stopping")
    press(watcher.pid, signal.SIGINT)
    is_stopped(watcher, 0)
    assert rows.outcomes(job_id) == ["released"]


def test_a_worker_whose_watcher_is_killed_drains(queue_db, worker_process, gate):
    job_id = enqueue("proc.wait", {"gate": str(gate("a"))}).id
    watcher = worker_process("--reload", "--grace", "60")
    gate("a").wait("started")
    watcher.signal(signal.SIGKILL)
    gate("a").wait("stopping")
    gate("a").say("go")
    watcher.wait_event("worker_stopped")
    is_stopped(watcher, -signal.SIGKILL)
    assert rows.outcomes(job_id) == ["completed"]


def test_wrong_options_are_refused_before_anything_is_watched(queue_db, manage):
    ended = manage("runworker", "--reload", "--max-jobs", "0")
    assert ended.returncode == 2
    assert "--max-jobs must be at least 1" in ended.stderr
    assert "worker_" not in ended.stderr
