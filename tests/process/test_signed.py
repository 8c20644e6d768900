"""Signing and middleware in a worker with children, as a project sets them."""

from __future__ import annotations

import pytest
from django.utils import translation

from django_leasequeue import enqueue
from tests.process import rows, signed_settings

ENVIRONMENT = {"DJANGO_SETTINGS_MODULE": "tests.process.signed_settings"}


@pytest.fixture
def signed(settings):
    """Enqueue in this process as that project does."""
    unsigned = enqueue("proc.language")
    settings.LEASEQUEUE = signed_settings.LEASEQUEUE
    with translation.override("de"):
        return enqueue("proc.language"), unsigned


def test_a_signed_job_runs_in_its_language(queue_db, worker_process, signed):
    """Seed S2: signatures and essential modules; case I15: no line shows a key."""
    right, unsigned = signed
    worker = worker_process("--drain", "--processes", "2", "--threads", "2", env=ENVIRONMENT)
    assert worker.wait() == 0
    assert rows.job(right.id).result == "de"
    dead = rows.job(unsigned.id)
    assert (dead.status, dead.last_error) == ("dead", "RejectedJob: Missing signature")
    (line,) = worker.named("job_rejected", job_id=unsigned.id)
    assert line["error"] == dead.last_error
    shown = [*map(str, worker.events), *worker.lines, worker.output]
    assert not [text for text in shown if "not a secret" in text]


def test_the_command_signs_what_waits(queue_db, manage, worker_process, signed):
    """Seed S2 leaves it to the adapter; here one command serves the roll-out."""
    _right, unsigned = signed
    counted = manage("leasequeue", "sign", "--dry-run", env=ENVIRONMENT)
    assert (counted.returncode, counted.stderr) == (0, "")
    assert counted.stdout.splitlines()[:4] == ["signed: 1", "renewed: 0", "forced: 0", "valid: 1"]
    assert manage("leasequeue", "sign", env=ENVIRONMENT).returncode == 0
    assert worker_process("--drain", env=ENVIRONMENT).wait() == 0
    assert rows.job(unsigned.id).status == "done"


def test_without_keys_the_command_says_so(queue_db, manage):
    refused = manage("leasequeue", "sign")
    assert refused.returncode == 2
    assert "SIGNING_KEYS" in refused.stderr
