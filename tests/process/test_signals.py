"""Django signals: each where and when it is promised, and receivers that raise change nothing."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from django_leasequeue import cancel, enqueue
from tests.process import rows
from tests.waiting import wait_until

SETTINGS = """
from tests.process.settings import *
from tests.process.settings import INSTALLED_APPS

INSTALLED_APPS = [*INSTALLED_APPS, "tests.process.listeners"]
"""
MODES = [pytest.param(("--solo",), id="solo"), pytest.param((), id="children")]
EVERY = (
    "jobs_claimed job_enqueued job_started job_finished job_dead lease_lost worker_started "
    "worker_stopped"
)


@pytest.fixture
def process_environment(process_environment, tmp_path: Path) -> dict[str, str]:
    """The environment of a project whose app listens."""
    (tmp_path / "listening_settings.py").write_text(SETTINGS)
    return {
        **process_environment,
        "DJANGO_SETTINGS_MODULE": "listening_settings",
        "SIGNALS_FILE": str(tmp_path / "signals"),
        "PYTHONPATH": os.pathsep.join([str(tmp_path), process_environment["PYTHONPATH"]]),
    }


@pytest.fixture
def noted(tmp_path: Path):
    """Returns what receivers were told so far, by signal."""

    def read(signal: str, **fields):
        path = tmp_path / "signals"
        lines = path.read_text().splitlines() if path.exists() else []
        entries = [json.loads(line) for line in lines]
        return [
            entry
            for entry in entries
            if entry["signal"] == signal
            and all(entry.get(name) == value for name, value in fields.items())
        ]

    return read


@pytest.mark.parametrize("mode", MODES)
def test_the_life_of_a_job(queue_db, worker_process, noted, mode):
    """job_finished comes when the end is in the database, with the exception itself."""
    done, dead = enqueue("proc.note").id, enqueue("proc.wait", {}, max_attempts=3).id
    failing = enqueue("proc.quote_sql", {"secret": "s"}, max_attempts=1).id
    worker = worker_process("--drain", *mode)
    assert worker.wait() == 0
    (started,) = noted("job_started", job_id=done)
    assert started["stored"] == "reserved"
    (finished,) = noted("job_finished", job_id=done)
    assert (finished["outcome"], finished["status"]) == ("completed", "done")
    assert finished["stored"] == "done"
    assert (started["pid"] == worker.pid) is bool(mode)
    (rejected,) = noted("job_finished", job_id=dead)
    assert (rejected["status"], rejected["error"]) == ("dead", "RejectedJob")
    assert noted("job_started", job_id=dead) == []
    (failed,) = noted("job_finished", job_id=failing)
    assert (failed["outcome"], failed["error"], failed["alive"]) == (
        "failed",
        "IntegrityError",
        True,
    )
    for job_id in (dead, failing):
        (died,) = noted("job_dead", job_id=job_id)
        assert died["stored"] == "dead"


@pytest.mark.parametrize("mode", MODES)
def test_a_worker_s_beginning_and_end(queue_db, worker_process, noted, mode):
    worker = worker_process("--drain", *mode)
    assert worker.wait() == 0
    (begun,), (ended,) = noted("worker_started"), noted("worker_stopped")
    assert begun["pid"] == ended["pid"] == worker.pid
    assert begun["worker"] == ended["worker"] == worker.named("worker_started")[0]["worker"]
    assert ended["code"] == 0


@pytest.mark.parametrize("mode", MODES)
def test_a_retry_is_finished_each_time(queue_db, worker_process, noted, mode):
    failing = enqueue("proc.fail", max_attempts=3).id
    assert worker_process("--drain", *mode).wait() == 0
    ends = [(end["attempt"], end["status"]) for end in noted("job_finished", job_id=failing)]
    assert ends == [(1, "ready"), (2, "ready"), (3, "dead")]


def test_a_death_with_a_hook_is_told_by_the_burial(queue_db, worker_process, noted):
    failing = enqueue("proc.fail", max_attempts=1).id
    worker = worker_process()
    wait_until(lambda: noted("job_dead", job_id=failing))
    wait_until(lambda: rows.job(failing).lease_until is None)
    (told,) = noted("job_dead", job_id=failing)
    assert (told["error"], told["pid"] == worker.pid) == ("JobError", False)


def test_a_death_without_its_child_is_told_too(queue_db, worker_process, noted):
    """The type has no hook: it is buried for those who listen."""
    killer = enqueue("proc.kill", max_attempts=1).id
    worker = worker_process()
    wait_until(lambda: noted("job_dead", job_id=killer))
    (told,) = noted("job_dead", job_id=killer)
    assert (told["error"], told["pid"] == worker.pid) == ("JobCrashed", False)
    assert noted("job_finished", job_id=killer) == []


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.only_on("mariadb", "mysql", "postgres")
def test_a_lost_lease(queue_db, worker_process, noted, gate, mode):
    waiting = enqueue("proc.wait", {"gate": str(gate("a"))}).id
    worker = worker_process(*mode)
    gate("a").wait("started")
    with queue_db.cursor() as cursor:  # as another worker's recovery and claim would
        cursor.execute("UPDATE leasequeue_job SET lease_token = NULL, status = 'done'")
    worker.wait_event("job_lease_lost", job_id=waiting)
    wait_until(lambda: noted("lease_lost", job_id=waiting))
    assert noted("job_finished") == []


@pytest.mark.parametrize("mode", MODES)
def test_a_cancelled_job(queue_db, worker_process, noted, gate, mode):
    waiting = enqueue("proc.wait", {"gate": str(gate("a"))}).id
    worker_process(*mode)
    gate("a").wait("started")
    assert cancel(waiting) == [waiting]
    wait_until(lambda: noted("job_finished", job_id=waiting))
    (end,) = noted("job_finished", job_id=waiting)
    assert (end["outcome"], end["status"], end["error"]) == (
        "cancelled",
        "cancelled",
        "JobCancelled",
    )


def test_a_child_that_is_replaced_waits_for_the_word(queue_db, worker_process, noted):
    jobs = [enqueue("proc.note").id for _ in range(5)]
    assert worker_process("--drain", "--max-jobs-per-child", "1").wait() == 0
    ends = noted("job_finished", status="done")
    assert sorted(end["job_id"] for end in ends) == jobs
    assert len({end["pid"] for end in ends}) == 5


def test_threads(queue_db, worker_process, noted):
    jobs = [enqueue("proc.note").id for _ in range(20)]
    assert worker_process("--drain", "--threads", "4").wait() == 0
    assert sorted(end["job_id"] for end in noted("job_finished", stored="done")) == jobs


@pytest.mark.parametrize("mode", MODES)
def test_receivers_that_raise(queue_db, worker_process, noted, mode):
    """Case C14: the job's end, the other receivers and the worker are as without them."""
    done = enqueue("proc.note").id
    dead = enqueue("proc.exit", {"name": "KeyError"}, max_attempts=1).id
    failing = enqueue("proc.fail", max_attempts=1).id
    worker = worker_process("--drain", *mode, env={"SIGNALS_THAT_RAISE": EVERY})
    wait_until(lambda: noted("job_finished", job_id=failing))
    assert worker.wait() == 0
    assert (rows.job(done).status, rows.outcomes(done)) == ("done", ["completed"])
    assert rows.job(failing).status == "dead"
    assert rows.outcomes(dead) == ["failed"]
    assert len(noted("job_finished", job_id=done)) == 1
    failures = worker.named("signal_failed", signal="job_finished")
    assert failures
    assert {(entry["receiver"], entry["error"]) for entry in failures} <= {
        ("fail", "OperationalError"),
        ("fail", "ProgrammingError"),
    }
    assert worker.lines == []
