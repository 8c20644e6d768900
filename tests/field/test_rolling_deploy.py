"""Case D3: jobs of another release, and a project whose job types cannot be loaded."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from django_leasequeue import enqueue, requeue
from django_leasequeue.registry import registry
from tests.core.arrange import history, job
from tests.field.workers import drain

SETTINGS = """
from tests.process.settings import *
from tests.process.settings import INSTALLED_APPS, LEASEQUEUE

INSTALLED_APPS = [*INSTALLED_APPS, "late"]
LEASEQUEUE = {**LEASEQUEUE, "JOBS": %(jobs)r}
"""
PLAIN = "tests.unit.manifest_handlers.plain"


@pytest.mark.parametrize("name", ["shop.new_one", "__main__.x"])
def test_an_unknown_type_is_dead_at_once_and_others_go_on(connection, declare, name):
    """Not all attempts are burnt in a second, nothing is lost, and the text says what it was."""
    done = []
    declare("known")(lambda: done.append(1))
    unknown = enqueue(name, {"a": 1})
    enqueue("known")
    drain()
    row = job(unknown.id)
    assert (row.status, row.attempts, len(history(unknown.id)), done) == ("dead", 1, 1, [1])
    assert row.last_error.endswith("Unsupported job type")
    declare(name)(lambda a: done.append(a))  # noqa: PLW0108  (a builtin has no signature)
    assert requeue(unknown.id) == [unknown.id]
    drain()
    assert (job(unknown.id).status, done) == ("done", [1, 1])


def test_a_renamed_function_runs_the_jobs_of_its_old_name(connection, declare):
    done = []

    def new(a):
        done.append(a)

    declare("shop.old")(new)
    made = enqueue("shop.old", {"a": 1})
    registry.remove("shop.old")
    declare("shop.new")(new)
    declare("shop.old")(new)
    drain()
    assert (job(made.id).status, done) == ("done", [1])


@pytest.fixture
def late(tmp_path: Path, process_environment):
    """Write an app's jobs.py and the setting JOBS; return the environment of a process with it."""

    def write(code: str, jobs: object = ()) -> dict[str, str]:
        (tmp_path / "late").mkdir()
        (tmp_path / "late" / "__init__.py").touch()
        (tmp_path / "late" / "jobs.py").write_text(code)
        (tmp_path / "late_settings.py").write_text(SETTINGS % {"jobs": jobs})
        return {
            "DJANGO_SETTINGS_MODULE": "late_settings",
            "PYTHONPATH": os.pathsep.join([str(tmp_path), process_environment["PYTHONPATH"]]),
        }

    return write


@pytest.mark.parametrize("command", ["runworker", "check"])
@pytest.mark.parametrize(
    ("code", "jobs", "says"),
    [
        ("1 / 0", (), "ZeroDivisionError"),
        ("import no_such_module", (), "No module named 'no_such_module'"),
        ("", [{"handler": PLAIN}], "LEASEQUEUE['JOBS'], entry 0 has no name"),
        ("", ["late.jobs.gone"], "entry 0 (late.jobs.gone): its handler late.jobs.gone cannot be"),
        (
            "from django_leasequeue import job\njob('twice')(lambda: None)",
            [{"name": "twice", "handler": PLAIN}],
            "Two job types are named 'twice': @job on late.jobs.<lambda> and LEASEQUEUE['JOBS']",
        ),
    ],
    ids=["raises", "imports", "nameless", "gone", "twice"],
)
def test_what_cannot_be_loaded_fails_loudly_at_the_start(manage, late, command, code, jobs, says):
    ended = manage(command, env=late(code, jobs))
    assert ended.returncode == 1
    assert says in ended.stderr
    assert "worker_started" not in ended.stderr


def test_job_types_of_a_file_run(connection, worker_process, late, tmp_path):
    """Declared as data in a JSON file: a worker process knows them in its children, too."""
    manifest = tmp_path / "module.json"
    manifest.write_text(json.dumps({"jobs": [{"name": "file.plain", "handler": PLAIN}]}))
    made = enqueue("file.plain", {"a": 7})
    worker = worker_process("--drain", env=late("", str(manifest)))
    assert worker.wait() == 0
    assert (job(made.id).status, job(made.id).result) == ("done", 7)
