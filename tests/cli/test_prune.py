"""`leasequeue prune`: its options, what it says, and its exit codes."""

from __future__ import annotations

import os
from datetime import timedelta

import pytest

from django_leasequeue.core import prune_run
from django_leasequeue.models import Job
from tests.core.pruning import archived, left, old_jobs

pytestmark = pytest.mark.usefixtures("queue_db")

COUNTS = {"attempts": 3, "effects": 0, "referenced": 0, "workers": 0, "bulk_runs": 0}


def test_it_says_how_many_rows_went(connection, leasequeue):
    old_jobs(connection, 3)
    ended = leasequeue("prune", "--older-than", "30d")
    assert (ended.code, left()) == (0, [])
    assert ended.lines[:2] == ["jobs: 3", "attempts: 3"]
    assert ended.err == "pruned: 3\n"


def test_json_and_a_dry_run(connection, leasequeue):
    ids = old_jobs(connection, 3)
    ended = leasequeue("prune", "--older-than", "0", "--dry-run", "--json")
    assert ended.document == {**COUNTS, "jobs": 3, "dry_run": True}
    assert left() == ids
    ended = leasequeue("prune", "--older-than", "0", "--json")
    assert ended.document == {**COUNTS, "jobs": 3, "dry_run": False}


def test_every_filter(connection, leasequeue, tmp_path, monkeypatch):
    pauses = []
    monkeypatch.setattr(prune_run, "sleep", pauses.append)
    gone = old_jobs(connection, 3, status="dead", job_type="a", queue="q", days=2)
    kept = [
        *old_jobs(connection, 1, status="dead", job_type="a", queue="q", days=2),
        *old_jobs(connection, status="done", job_type="a", queue="q"),
        *old_jobs(connection, status="dead", job_type="b", queue="q"),
        *old_jobs(connection, status="dead", job_type="a", queue="r"),
        *old_jobs(connection, status="dead", job_type="a", queue="q", days=0.9),
    ]
    path = tmp_path / "a.gz"
    options = f"--status dead --type a --type c --queue q --older-than 1d --archive {path}"
    ended = leasequeue("prune", *f"{options} --limit 3 --batch 2 --pause 0.5".split())
    assert (ended.code, left()) == (0, kept)
    assert [record["job"]["id"] for record in archived(path)] == gone
    assert pauses == [0.5]


def test_the_setting_says_what_is_old(connection, leasequeue, settings):
    old_jobs(connection, 2)
    ended = leasequeue("prune")
    assert (ended.code, Job.objects.count()) == (0, 2)
    assert "RETENTION" in ended.err
    settings.LEASEQUEUE = {**settings.LEASEQUEUE, "RETENTION": {"done": timedelta(days=30)}}
    ended = leasequeue("prune")
    assert (ended.code, Job.objects.count(), "RETENTION" in ended.err) == (0, 0, False)


@pytest.mark.parametrize(
    "options",
    [
        "--status ready --older-than 30d",
        "--status reserved",
        "--older-than 30",
        "--older-than -1d",
        "--older-than 99999999w",
        "--older-than 0 --batch 0",
        "--older-than 0 --pause 9999999999",
        "--older-than 0 --archive /nowhere/at/all.gz",
        "--status dead",
    ],
)
def test_what_is_refused(connection, leasequeue, options):
    ids = old_jobs(connection, 2)
    ended = leasequeue("prune", *options.split())
    # Django has 1 for a usage error in call_command(), and 2 on the command line.
    assert (ended.code in (1, 2), ended.out, left()) == (True, "", ids)
    assert "Traceback" not in ended.err


def test_a_disk_that_is_full(connection, leasequeue, tmp_path, monkeypatch):
    ids = old_jobs(connection, 2)
    folder = os.open(tmp_path, os.O_RDONLY)

    def full(number):
        if not os.path.samestat(os.fstat(number), os.fstat(folder)):
            raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full)
        ended = leasequeue("prune", "--older-than", "0", "--archive", tmp_path / "a.gz")
    os.close(folder)
    assert (ended.code, left()) == (1, ids)
    assert "No space left on device" in ended.err
