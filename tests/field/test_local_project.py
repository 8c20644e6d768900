"""A project without time zone support, from its migrations on: jobs fire at the right instant."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from django.db import connections

from django_leasequeue.models import Job, JobAttempt

LOCAL = {"DJANGO_USE_TZ": "0", "DJANGO_TIME_ZONE": "America/New_York"}


@pytest.fixture
def another_database(connection, database_url: str, tmp_path: Path) -> Iterator[str]:
    """The URL of an empty database beside the tests' own."""
    if connection.vendor == "sqlite":
        yield f"sqlite:///{tmp_path / 'local.sqlite3'}"
        return
    name = connection.ops.quote_name(f"{connection.settings_dict['NAME']}_local")
    charset = " CHARACTER SET utf8mb4" if connection.vendor == "mysql" else ""
    with connection.cursor() as cursor:
        cursor.execute(f"DROP DATABASE IF EXISTS {name}")
        cursor.execute(f"CREATE DATABASE {name}{charset}")
        try:
            yield f"{database_url}_local"
        finally:
            cursor.execute(f"DROP DATABASE {name}")


@contextmanager
def reading(url: str) -> Iterator[str]:
    """Let this process read the other database through an alias of its own."""
    path = urlsplit(url).path
    settings = connections.settings["default"]
    connections.settings["local"] = {**settings, "NAME": path[1:]}
    try:
        yield "local"
    finally:
        connections["local"].close()
        del connections["local"], connections.settings["local"]


def test_migrate_enqueue_and_work(another_database, worker_process, manage):
    """H2: USE_TZ=False, TIME_ZONE=America/New_York, in every process."""
    env = {**LOCAL, "DATABASE_URL": another_database}
    for arguments in (("migrate", "-v0"), ("makemigrations", "--check", "--dry-run")):
        answer = manage(*arguments, env=env)
        assert answer.returncode == 0, answer.stderr
    answer = manage("enqueue_report", "acme", "2042-01", env=env)
    assert answer.returncode == 0, answer.stderr
    job_id = int(answer.stdout)
    worker = worker_process("--lease", "20", env=env)
    worker.wait_event("job_completed", job_id=job_id, attempt=1)
    worker.signal(signal.SIGTERM)
    assert worker.wait() == 0
    with reading(another_database) as alias:
        stored = Job.objects.using(alias).get(pk=job_id)
        attempt = JobAttempt.objects.using(alias).get(job_id=job_id)
        stamps = [stored.created_at, stored.claimed_at, stored.finished_at, attempt.started_at]
        assert stored.status == "done"
        for stamp in stamps:
            assert abs(stamp - datetime.now(UTC)) < timedelta(minutes=1)
