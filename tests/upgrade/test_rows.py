"""Rows of a release under this version: written before the migration, and by who still runs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db.migrations.executor import MigrationExecutor
from django.test import Client

from django_leasequeue import enqueue, resume, verify
from django_leasequeue.core.bulk import go_on
from django_leasequeue.models import BulkRun, DeadGroup, Job, JobAttempt, Schedule, Worker
from tests.field.workers import drain
from tests.upgrade import RELEASES, handlers, read
from tests.upgrade.handlers import PAYLOAD, Seen, declared
from tests.upgrade.rows import load
from tests.upgrade.scenario import play
from tests.upgrade.schema import APP, migrations

pytestmark = pytest.mark.leaves_reserved


@pytest.fixture(autouse=True)
def _settings(settings) -> None:
    settings.LEASEQUEUE = {**settings.LEASEQUEUE, **handlers.LEASEQUEUE}


@pytest.fixture
def seen() -> Iterator[Seen]:
    found: Seen = []
    with declared(found):
        yield found


def ways() -> list[str]:
    """Return each release, and which tables take its rows: its own, before the migration, or ours.

    The second is what its processes do that go on after the migration.
    """
    here = migrations()
    older = [name for name in RELEASES if read(name, "schema")["migrations"] != here]
    return [f"{name}, ours" for name in RELEASES] + [f"{name}, its own" for name in older]


@pytest.fixture(params=ways())
def release(request, connection) -> str:
    """Insert the rows of a release, and return its name."""
    name, _, whose = str(request.param).partition(", ")
    if whose == "its own":
        migrate(connection, read(name, "schema")["migrations"][-1])
    try:
        load(connection, read(name, "rows"))
    finally:
        migrate(connection, migrations()[-1])
    return name


def migrate(connection: Any, name: str) -> None:
    MigrationExecutor(connection).migrate([(APP, name)])


def job(**values: Any) -> Job:
    return Job.objects.get(**values)


def test_signatures_and_payloads_are_as_they_were(release):
    signed = list(Job.objects.exclude(signature=""))
    assert len(signed) == Job.objects.count()
    assert [one for one in signed if not verify(one)] == []
    done = job(job_type="upgrade.note", status="done")
    assert (done.payload, done.result) == (PAYLOAD, {"rows": 5})


def test_keys_are_still_taken(release, seen):
    for key, options in (("order:7", {}), ("order:8", {"key_until": "finished"}), ("done", {})):
        made = enqueue("upgrade.note", {"again": True}, key=key, **options)
        assert not made.created
    assert not Job.objects.filter(payload={"again": True}).exists()


def test_all_that_waits_runs_and_remembers(release, seen):
    steps, late = job(job_type="upgrade.steps").pk, job(priority=5).pk
    lost = job(status="reserved").pk
    before = dict(map(tuple, read(release, "seen")))
    drain()
    assert ("charged", False) in seen
    assert ("checkpoint", {"at": 7}) in seen
    assert ("language", before["language"]) in seen
    assert ("key for the remote", before["key for the remote"]) in seen
    assert ("parked", None) in seen
    assert ("note", {"tick": True}) in seen
    assert [what for what in seen if what[0] == "buried"] == [("buried", before["buried"])]
    assert {job(pk=pk).status for pk in (steps, late, lost)} == {"done"}
    attempts = JobAttempt.objects.filter(job_id__in=(steps, lost)).order_by("job_id", "number")
    assert [one.outcome for one in attempts] == ["failed", "completed", "expired", "completed"]
    assert {one.status for one in Job.objects.filter(queue_name="held")} == {"ready"}
    resume("held")
    drain()
    assert ("note", {"queue": "held"}) in seen
    assert set(Job.objects.values_list("status", flat=True)) == {"done", "dead", "cancelled"}


def test_a_bulk_run_goes_on(release, seen):
    run = go_on(BulkRun.objects.get().pk)
    assert (run.state, run.changed) == ("finished", 2)
    drain()
    assert sorted(what[1] for what in seen if what[0] == "rejected") == [8, 9]


def test_what_operators_noted_is_shown(release, queue_db):
    client = Client()
    client.force_login(User.objects.create_superuser("root", password="x"))
    group, worker, schedule = DeadGroup.objects.get(), Worker.objects.get(), Schedule.objects.get()
    assert group.note == "the shop was told"
    assert Job.objects.filter(fingerprint=group.fingerprint, status="dead").exists()
    asked = [f"job/{pk}/change/" for pk in Job.objects.values_list("pk", flat=True)]
    asked += ["", "job/", "deadgroup/", "queue/", "worker/", "schedule/", "bulkrun/"]
    asked += [f"worker/{worker.pk}/change/", f"schedule/{schedule.pk}/change/"]
    asked += [f"bulkrun/{BulkRun.objects.get().pk}/change/"]
    for address in asked:
        assert client.get(f"/admin/leasequeue/{address}").status_code == 200, address


def test_this_version_writes_its_own_rows_on_every_database(connection):
    """What `make snapshot` plays, so that it goes on to be there to be played."""
    seen = play(connection)
    assert [what for what, _value in seen] == [
        *("note", "charged", "checkpoint", "language", "key for the remote"),
        *("rejected", "buried"),
    ]
