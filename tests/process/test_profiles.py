"""Worker profiles: one or several by name in one command, started, stopped and ended together."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from django_leasequeue import enqueue
from django_leasequeue.models import Job
from tests.process import rows

SETTINGS = """
from tests.process.settings import *
from tests.process.settings import DATABASES, LEASEQUEUE

LEASEQUEUE = {
    **LEASEQUEUE,
    "DATABASE_OUTAGE_LIMIT": 0,
    "WORKERS": {
        "mail": {"queues": "mail,urgent", "grace": 60},
        "reports": {"queues": ["reports"], "grace": 60, "name": "reporter"},
        "once": {"queues": ["mail"], "max_jobs": 1},
        "away": {"queues": ["reports"], "database": "away"},
        "alone": {"solo": True},
        "typo": {"queue": "mail"},
        "text": {"processes": "2"},
        "none": {"processes": 0},
    },
}

DATABASES["away"] = {**DATABASES["default"], "HOST": "127.0.0.1", "PORT": "1"}
if DATABASES["default"]["ENGINE"].endswith("sqlite3"):
    DATABASES["away"]["NAME"] = "/nowhere/at/all.sqlite3"
"""


@pytest.fixture
def process_environment(process_environment, tmp_path: Path) -> dict[str, str]:
    """The environment of a project that has profiles."""
    (tmp_path / "profiled_settings.py").write_text(SETTINGS)
    return {
        **process_environment,
        "DJANGO_SETTINGS_MODULE": "profiled_settings",
        "PYTHONPATH": os.pathsep.join([str(tmp_path), process_environment["PYTHONPATH"]]),
    }


def names(worker, event):
    return sorted(entry["worker"].partition(":")[0] for entry in worker.named(event))


def claimed(worker):
    return {entry["job_id"]: entry["worker"].partition(":")[0] for entry in by_claim(worker)}


def by_claim(worker):
    return worker.named("job_claimed")


def test_each_profile_is_a_worker_on_its_own_queues(queue_db, worker_process):
    jobs = {enqueue("proc.note", queue=queue).id: name for queue, name in QUEUES.items()}
    worker = worker_process("--profile", "mail", "--profile", "reports", "--drain")
    assert worker.wait() == 0
    assert (
        names(worker, "worker_started") == names(worker, "worker_stopped") == ["mail", "reporter"]
    )
    assert claimed(worker) == {job: name for job, name in jobs.items() if name}
    waiting = Job.objects.filter(status="ready").values_list("queue_name", flat=True)
    assert list(waiting) == ["elsewhere"]


QUEUES = {"mail": "mail", "urgent": "mail", "reports": "reporter", "elsewhere": ""}


def test_options_on_the_command_line_win(queue_db, worker_process):
    mail, other = (enqueue("proc.note", queue=queue).id for queue in ("mail", "elsewhere"))
    options = ("--queues", "elsewhere", "--name", "mine", "--max-jobs", "1")
    worker = worker_process("--profile", "mail", *options)
    assert worker.wait() == 0
    assert claimed(worker) == {other: "mine"}
    assert rows.job(mail).status == "ready"


def test_a_profile_s_worker_that_ended_in_order_leaves_the_others_at_work(queue_db, worker_process):
    worker = worker_process("--profile", "once", "--profile", "reports")
    enqueue("proc.note", queue="mail")
    worker.wait_event("worker_stopped")
    late = enqueue("proc.note", queue="reports").id
    worker.wait_event("job_completed", job_id=late)
    worker.signal(signal.SIGTERM)
    assert worker.wait() == 0
    assert names(worker, "worker_stopped") == ["once", "reporter"]


@pytest.fixture
def both_running(queue_db, worker_process, gate):
    """Two profiles in one command, the handler of each waiting at its gate."""
    ids = [
        enqueue("proc.wait", {"gate": str(gate(queue))}, queue=queue).id
        for queue in ("mail", "reports")
    ]
    worker = worker_process("--profile", "mail", "--profile", "reports")
    for queue in ("mail", "reports"):
        gate(queue).wait("started")
    return worker, ids


def test_one_sigterm_drains_them_all(both_running, gate):
    worker, ids = both_running
    worker.signal(signal.SIGTERM)
    for queue in ("mail", "reports"):
        gate(queue).wait("stopping")
        gate(queue).say("go")
    assert worker.wait() == 0
    assert [rows.outcomes(job_id) for job_id in ids] == [["completed"], ["completed"]]
    assert names(worker, "worker_stopped") == ["mail", "reporter"]


def test_a_second_signal_aborts_them_all(both_running, gate):
    worker, ids = both_running
    worker.signal(signal.SIGTERM)
    for queue in ("mail", "reports"):
        gate(queue).wait("stopping")
    worker.signal(signal.SIGINT)
    assert worker.wait() == 0
    assert [rows.outcomes(job_id) for job_id in ids] == [["released"], ["released"]]
    assert [rows.job(job_id).attempts for job_id in ids] == [0, 0]


def test_when_one_fails_all_end_with_its_code(queue_db, worker_process, gate):
    job_id = enqueue("proc.wait", {"gate": str(gate("a"))}, queue="mail").id
    worker = worker_process("--profile", "mail", "--profile", "away")
    worker.wait_event("worker_fatal")
    gate("a").say("go")
    assert worker.wait() == 1
    assert names(worker, "worker_fatal") == ["away"]
    assert names(worker, "worker_stopped") == ["mail"]
    assert rows.job(job_id).status in ("done", "ready")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("mial",), "no worker profile 'mial'. Known: alone, away, mail, none, once, reports"),
        (
            ("typo",),
            "LEASEQUEUE['WORKERS']['typo']: unknown option 'queue'. Known: database, drain",
        ),
        (("text",), "LEASEQUEUE['WORKERS']['text']: 'processes' must be int, not '2'"),
        (("none",), "Worker profile 'none': --processes and --threads must be 1 to 1000"),
        (("mail", "mail"), "each profile once"),
        (("mail", "alone"), "start each solo profile with a command of its own"),
    ],
)
def test_a_wrong_profile_is_explained_and_nothing_starts(manage, queue_db, options, message):
    given = [word for name in options for word in ("--profile", name)]
    ended = manage("leasequeue", "worker", "--drain", *given)
    assert ended.returncode == 2
    assert message in ended.stderr
    assert "Traceback" not in ended.stderr
    assert "worker_started" not in ended.stderr
