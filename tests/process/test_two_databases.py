"""C12: a queue in another database than the business rows: what still holds, and what does not."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

SETTINGS = """
from tests.process.settings import *
from tests.process.settings import DATABASES, INSTALLED_APPS, LEASEQUEUE

DATABASES["queue"] = {{"ENGINE": "django.db.backends.sqlite3", "NAME": {path!r}}}
DATABASE_ROUTERS = ["two_databases.Router"]
LEASEQUEUE = {{**LEASEQUEUE, "DATABASE": "queue"}}
# Of those handlers one is atomic, which this file's kind of database refuses.
INSTALLED_APPS = [*(set(INSTALLED_APPS) - {{"tests.process.handlers"}}), "two_databases_jobs"]


class Router:
    def db_for_read(self, model, **hints):
        return "queue" if model._meta.app_label == "leasequeue" else "default"

    db_for_write = db_for_read
"""
JOBS = """
from django_leasequeue import job
from reports.models import GeneratedReport


@job("report_and_fail", takes_context=True)
def report_and_fail(context):
    with context.complete():
        GeneratedReport.objects.create(
            idempotency_key="k", tenant_id="t", report_month="2042-01", result_json={}
        )
        raise ValueError
"""
ENQUEUE = """
from django.db import transaction
from django_leasequeue import enqueue
try:
    with transaction.atomic():
        job = enqueue("report_and_fail", max_attempts=1)
        raise ValueError
except ValueError:
    print(job.pk)
"""
LOOK = """
import json
from django_leasequeue.models import Job
from reports.models import GeneratedReport
row = Job.objects.get()
attempts = [attempt.outcome for attempt in row.history.all()]
print(json.dumps([row.status, attempts, GeneratedReport.objects.using("default").count()]))
"""


@pytest.fixture
def process_environment(process_environment, tmp_path: Path) -> dict[str, str]:
    """The environment of a project whose queue is in a database of its own."""
    text = SETTINGS.format(path=str(tmp_path / "queue.sqlite3"))
    (tmp_path / "two_databases.py").write_text(text)
    (tmp_path / "two_databases_jobs").mkdir()
    (tmp_path / "two_databases_jobs" / "__init__.py").touch()
    (tmp_path / "two_databases_jobs" / "jobs.py").write_text(JOBS)
    return {
        **process_environment,
        "DJANGO_SETTINGS_MODULE": "two_databases",
        "PYTHONPATH": os.pathsep.join([str(tmp_path), process_environment["PYTHONPATH"]]),
    }


def test_the_two_commit_apart(queue_db, manage, worker_process):
    """The job outlives the caller's rollback; a row outlives the completion that failed."""
    made = manage("migrate", "--database", "queue", "--verbosity", "0")
    assert made.returncode == 0, made.stderr
    assert manage("shell", "-c", ENQUEUE).returncode == 0
    worker = worker_process("--drain")
    assert worker.wait() == 0, worker.log()
    assert json.loads(manage("shell", "-v", "0", "-c", LOOK).stdout) == ["dead", ["failed"], 1]


def test_the_check_warns(queue_db, manage):
    told = manage("check")
    assert told.returncode == 0
    assert "leasequeue.W002" in told.stderr
    assert "'queue'" in told.stderr
    assert "no transaction joins them" in told.stderr


def test_no_warning_where_they_are_together(queue_db, manage):
    told = manage("check", env={"DJANGO_SETTINGS_MODULE": "tests.process.settings"})
    assert "W002" not in told.stdout + told.stderr
