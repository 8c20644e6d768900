"""Case I15: whatever a job holds and however it ends, the log has ids and names only."""

from __future__ import annotations

import json

import pytest

from django_leasequeue import enqueue
from django_leasequeue.models import Job, JobAttempt, JobEffect, Worker
from tests.core.arrange import write
from tests.process.handlers.secretive import WAYS

SECRET = "Zq7-marker-of-a-secret"
SETTINGS = {"DJANGO_SETTINGS_MODULE": "tests.process.loud_settings"}
FORMATS = {
    "json": ("--log-format", "json"),
    "text": ("--log-format", "text"),
    "the project's": (),
}


@pytest.fixture
def secrets(connection):
    """Enqueue jobs with secrets in every place; return the ids, way by way."""
    ids = {}
    for way in WAYS:
        timeout = 0.5 if way == "sleeps" else None
        payload = {"way": way, "secret": SECRET}
        ids[way] = enqueue("proc.secretive", payload, key=f"{SECRET}{way}", timeout=timeout).id
        write(connection, ids[way], context=json.dumps({"secret": SECRET}))
    ids["wrong"] = enqueue("proc.secretive", {"way": "", "secret": SECRET}, key=SECRET).id
    write(connection, ids["wrong"], payload=json.dumps([SECRET]))
    return ids


@pytest.mark.parametrize("shape", FORMATS)
def test_secrets_stay_in_the_job(queue_db, secrets, worker_process, shape):
    own = {} if FORMATS[shape] else {"PROCESS_TEST_OWN_HANDLER": "1"}
    arguments = ("--drain", "--kill-after", "1", *FORMATS[shape])
    worker = worker_process(*arguments, env={**SETTINGS, **own})
    assert worker.wait() == 0, worker.log()
    log = worker.log() + worker.output
    assert SECRET not in log
    events = ("job_failed", "job_timed_out", "job_crashed", "job_rejected", "job_snoozed")
    for event in (*events, "job_completed", "job_dead", "burial_failed", "recovery_passed"):
        assert event in log, event
    assert outcomes() == EXPECTED
    assert SECRET not in str(shown_to_operators())


EXPECTED = {
    **dict.fromkeys(WAYS, "dead"),
    **dict.fromkeys(("snoozes", "completes", "returns"), "done"),
    "wrong": "dead",
}


def outcomes():
    rows = {}
    for job in Job.objects.all():
        way = job.payload["way"] if isinstance(job.payload, dict) else "wrong"
        rows[way] = job.status
    return rows


def shown_to_operators():
    """Return every column but those that are there to hold what a job was told, or tells."""
    told = {"payload", "context", "result", "checkpoint", "progress"}
    columns = [field.attname for field in Job._meta.concrete_fields if field.attname not in told]
    return [
        *Job.objects.values_list(*columns),
        *JobAttempt.objects.values_list(),
        *JobEffect.objects.values_list(),
        *Worker.objects.values_list(),
    ]
