"""Unknown job types: dead at once, or parked until a worker comes that knows them."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from django_leasequeue import enqueue, reschedule
from django_leasequeue.models import Job
from tests.process import rows
from tests.waiting import wait_until

SETTINGS = """
from tests.process.settings import *
from tests.process.settings import INSTALLED_APPS

INSTALLED_APPS = [*INSTALLED_APPS, "{app}"]
"""
OLD = """
from django_leasequeue import job

@job("deploy.changed")
def changed(a):
    return "old"
"""
NEW = """
from django_leasequeue import job

@job("deploy.changed", version=2, upcast=lambda payload, version: {"a": payload["a"], "b": 0})
def changed(a, b):
    return "new"

@job("deploy.new")
def new():
    return "new"
"""


@pytest.fixture
def release(process_environment, tmp_path: Path):
    """A factory: the environment of a worker that has this code in an app of its own."""

    def write(name: str, code: str) -> dict[str, str]:
        app = tmp_path / name
        app.mkdir()
        (app / "__init__.py").touch()
        (app / "jobs.py").write_text(code)
        (tmp_path / f"{name}_settings.py").write_text(SETTINGS.format(app=name))
        return {
            "DJANGO_SETTINGS_MODULE": f"{name}_settings",
            "PYTHONPATH": os.pathsep.join([str(tmp_path), process_environment["PYTHONPATH"]]),
        }

    return write


def with_version(queue_db, version: int, *args, **options) -> int:
    """Enqueue as a program does whose code has that version of the payload."""
    job = enqueue(*args, delay=60, **options)
    with queue_db.cursor() as cursor:
        cursor.execute(
            "UPDATE leasequeue_job SET payload_version = %s WHERE id = %s", [version, job.id]
        )
    assert reschedule(job.id) == [job.id]
    return job.id


@pytest.mark.parametrize("mode", [(), ("--solo",)], ids=["children", "solo"])
def test_a_rolling_deploy(queue_db, worker_process, release, mode):
    """S3: the old code's worker leaves to the new one what it does not know."""
    added = enqueue("deploy.new").id
    changed = with_version(queue_db, 2, "deploy.changed", {"a": 1, "b": 2})
    known = enqueue("deploy.changed", {"a": 1}).id
    old = worker_process("--handled-only", *mode, env=release("old_release", OLD))
    for job_id in (added, changed):
        parked = old.wait_event("job_parked", job_id=job_id)
        assert parked["error"].startswith("Parked: the worker does not know")
        assert rows.job(job_id).status == "parked"
    old.wait_event("job_completed", job_id=known)
    assert (rows.job(known).result, old.named("job_claimed", job_id=added)) == ("old", [])
    new = worker_process(*mode, env=release("new_release", NEW))
    for job_id in (added, changed):
        new.wait_event("job_completed", job_id=job_id)
        row = rows.job(job_id)
        assert (row.status, row.result, row.attempts) == ("done", "new", 1)
        assert rows.outcomes(job_id) == ["completed"]
    for worker in (old, new):
        worker.signal(signal.SIGTERM)
        assert worker.wait() == 0


def test_the_setting_parks_as_well(queue_db, worker_process, release):
    env = release("parking_release", NEW)
    settings = Path(env["PYTHONPATH"].split(os.pathsep)[0]) / "parking_release_settings.py"
    settings.write_text(
        settings.read_text()
        + "\nfrom tests.process.settings import LEASEQUEUE\n"
        + 'LEASEQUEUE = {**LEASEQUEUE, "UNKNOWN_JOB_TYPES": "park"}\n'
    )
    unknown, known = enqueue("deploy.unknown").id, enqueue("deploy.new").id
    assert worker_process("--drain", env=env).wait() == 0
    assert (rows.job(unknown).status, rows.job(known).status) == ("parked", "done")
    assert (rows.job(unknown).attempts, rows.outcomes(unknown)) == (0, [])


def test_dead_at_once_by_default(queue_db, worker_process, release):
    """S1, S2: a type that no handler has is rejected without another attempt."""
    env = release("strict_release", OLD)
    unknown = enqueue("deploy.unknown").id
    newer = with_version(queue_db, 2, "deploy.changed", {"a": 1})
    worker = worker_process("--drain", env=env)
    assert worker.wait() == 0
    assert rows.job(unknown).last_error == "UnknownJobType: Unsupported job type"
    for job_id in (unknown, newer):
        assert (rows.job(job_id).status, rows.outcomes(job_id)) == ("dead", ["rejected"])


def test_a_drain_takes_what_is_parked_along(queue_db, worker_process, release):
    jobs = [enqueue("deploy.new").id for _ in range(250)]
    Job.objects.filter(pk__in=jobs).update(status="parked")
    worker = worker_process("--drain", env=release("draining_release", NEW))
    assert worker.wait() == 0
    assert Job.objects.filter(status="done").count() == len(jobs)


@pytest.mark.only_on("mariadb", "mysql", "postgres")
def test_two_kinds_of_workers_share_a_queue(queue_db, worker_process, release):
    """S3: workers under different accounts, one table. What one parks the other runs."""
    for kind in ("left", "right"):
        code = f'from django_leasequeue import job\n\n@job("share.{kind}")\ndef run():\n    pass\n'
        worker_process("--handled-only", "--name", kind, env=release(f"{kind}_release", code))
    jobs = [enqueue(f"share.{kind}").id for _ in range(30) for kind in ("left", "right")]
    ours = Job.objects.filter(pk__in=jobs)
    wait_until(lambda: ours.filter(status="done").count() == len(jobs), timeout=60)
    assert all(row.attempts == 1 for row in ours)
    # Each was parked a few times at the most: no ping-pong.
    assert sum(ours.values_list("claims", flat=True)) < 4 * len(jobs)
