"""C12: a queue in another database than the business rows: what still holds, and what does not."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.apps import apps

SETTINGS = """
from tests.process.settings import *
from tests.process.settings import DATABASES, INSTALLED_APPS, LEASEQUEUE

DATABASES["queue"] = {{**DATABASES["default"], "NAME": {name!r}}}
DATABASE_ROUTERS = ["two_databases.Router"]
LEASEQUEUE = {{**LEASEQUEUE, "DATABASE": "queue"}}
INSTALLED_APPS = [*(set(INSTALLED_APPS) - {{"tests.process.handlers"}}), "two_databases_jobs"]


class Router:
    def db_for_read(self, model, **hints):
        return "queue" if model._meta.app_label == "leasequeue" else "default"

    db_for_write = db_for_read

    def allow_migrate(self, db, app_label, **hints):
        if app_label == "reports":  # business rows in both
            return True
        return (db == "queue") == (app_label == "leasequeue")
"""
JOBS = """
from django_leasequeue import job
from reports.models import GeneratedReport


def write(context, **database):
    GeneratedReport.objects.db_manager(**database).create(
        idempotency_key=f"{context.job_id}-{len(database)}", tenant_id="t", report_month="2042-01",
        result_json={},
    )


@job("both", takes_context=True)
def both(context, fails):
    with context.complete():
        write(context)
        write(context, using=context.using)
        if fails:
            raise ValueError
"""
ENQUEUE = """
from django.db import transaction
from django_leasequeue import enqueue
for alias in ("default", "queue"):
    for fails in (True, False):
        try:
            with transaction.atomic(using=alias):
                enqueue("both", {"fails": fails}, max_attempts=1)
                raise ValueError
        except ValueError:
            pass
"""
LOOK = """
import json
from django_leasequeue.models import Job
from reports.models import GeneratedReport
found = [
    [row.status, row.payload["fails"], [attempt.outcome for attempt in row.history.all()]]
    for row in Job.objects.order_by("pk")
]
rows = [GeneratedReport.objects.using(alias).count() for alias in ("default", "queue")]
print(json.dumps([found, rows]))
"""

TABLES = """
import json
from django.db import connections
print(json.dumps(connections["queue"].introspection.table_names()))
"""

#: The apps whose tables are in the queue's database.
APPS = ("leasequeue", "reports")
#: Every sub-command without --database, while the other database refuses whatever names the queue.
COMMANDS = """
from django.core.management import call_command
from django.db import connections
from django_leasequeue import enqueue

def refuse(execute, sql, params, many, context):
    assert "leasequeue_" not in sql, sql
    return execute(sql, params, many, context)

job = str(enqueue("report_and_fail", max_attempts=1).pk)
with connections["default"].execute_wrapper(refuse):
    for words in (
        "status", "jobs", "jobs " + job, "schedules", "health", "recover", "pause default",
        "resume default", "cancel " + job, "requeue " + job, "cancel " + job,
        "prune --older-than 0", "doctor --json",
    ):
        try:
            call_command("leasequeue", *words.split())
        except SystemExit as end:
            print(words, end.code)
"""


@pytest.fixture
def queue_name(queue_db, tmp_path: Path) -> Iterator[str]:
    """The name of a second database on the same server."""
    if queue_db.vendor == "sqlite":
        yield str(tmp_path / "queue.sqlite3")
        return
    name = f"{queue_db.settings_dict['NAME']}_queue"
    quoted = queue_db.ops.quote_name(name)
    with queue_db.cursor() as cursor:
        cursor.execute(f"DROP DATABASE IF EXISTS {quoted}")
        cursor.execute(f"CREATE DATABASE {quoted}")
    yield name
    with queue_db.cursor() as cursor:
        cursor.execute(f"DROP DATABASE {quoted}")


@pytest.fixture
def process_environment(process_environment, queue_name, tmp_path: Path) -> dict[str, str]:
    """The environment of a project whose queue is in a database of its own."""
    text = SETTINGS.format(name=queue_name)
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
    """A job outlives a rollback on `default`, rows there outlive the completion that failed.

    What is in the queue's own database still commits with it: enqueues and business rows.
    """
    made = manage("migrate", "--database", "queue", "--verbosity", "0")
    assert made.returncode == 0, made.stderr
    assert manage("shell", "-c", ENQUEUE).returncode == 0
    worker = worker_process("--drain")
    assert worker.wait() == 0, worker.log()
    jobs, (apart, together) = json.loads(manage("shell", "-v", "0", "-c", LOOK).stdout)
    assert jobs == [["dead", True, ["failed"]], ["done", False, ["completed"]]]
    assert (apart, together) == (2, 1)


def test_commands_find_the_queue_where_it_is(queue_db, manage):
    """G10: LEASEQUEUE["DATABASE"] is said once, and every command goes by it."""
    made = manage("migrate", "--database", "queue", "--verbosity", "0")
    assert made.returncode == 0, made.stderr
    tables = json.loads(manage("shell", "-v", "0", "-c", TABLES).stdout)
    assert set(tables) == {
        "django_migrations",
        *(model._meta.db_table for app in APPS for model in apps.get_app_config(app).get_models()),
    }
    ended = manage("shell", "-v", "0", "-c", COMMANDS)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "database queue" in ended.stdout
    # doctor finds something (W002, at least), and nothing else fails.
    found = [line for line in ended.stdout.splitlines() if re.fullmatch(r"[a-z -]+ \d", line)]
    assert found in ([], ["doctor --json 1"])


def test_the_check_warns(queue_db, manage):
    told = manage("check")
    assert told.returncode == 0
    assert "leasequeue.W002" in told.stderr
    assert "'queue'" in told.stderr
    assert "no transaction joins them" in told.stderr


def test_no_warning_where_they_are_together(queue_db, manage):
    told = manage("check", env={"DJANGO_SETTINGS_MODULE": "tests.process.settings"})
    assert "W002" not in told.stdout + told.stderr
