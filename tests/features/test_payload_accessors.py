"""S2: what JobPayload tells a handler, by the names that the context has for it."""

from __future__ import annotations

from datetime import UTC

import pytest

from django_leasequeue import Fixed, enqueue, sign, verify
from django_leasequeue.models import Job

pytestmark = pytest.mark.usefixtures("connection")


@pytest.fixture
def told(declare, finish):
    """Run one attempt of a job and return its context."""
    seen = []

    @declare("told", takes_context=True, backoff=Fixed(0), max_attempts=2)
    def handler(context, **data):
        seen.append(context)
        raise OSError

    def run_once():
        finish()
        return seen[-1]

    return run_once


def test_its_id_type_queue_and_data(told):
    """jobId(), jobClass(), queue(), data()."""
    made = enqueue("told", {"invoice_id": 7}, queue="reports")
    context = told()
    assert (context.job_id, context.job_type, context.queue) == (made.id, "told", "reports")
    assert context.payload == {"invoice_id": 7}


def test_its_attempts_and_whether_they_are_used_up(told):
    """attempts(), maxAttempts(), hasExceededMaxAttempts()."""
    made = enqueue("told")
    first, last = told(), told()
    assert [(one.attempt, one.max_attempts) for one in (first, last)] == [(1, 2), (2, 2)]
    assert [one.is_last_attempt for one in (first, last)] == [False, True]
    assert Job.objects.get(pk=made.id).status == "dead"


def test_when_it_was_enqueued(told):
    """enqueuedAt(): aware, and the same in each attempt."""
    made = enqueue("told")
    first, second = told(), told()
    assert first.enqueued_at == second.enqueued_at == Job.objects.get(pk=made.id).created_at
    assert first.enqueued_at.tzinfo is UTC


def test_its_signature(told, settings):
    """signature(), signatureFor(), isSignatureValid(); empty when signing is off."""
    enqueue("told")
    assert told().signature == ""
    Job.objects.all().delete()
    settings.LEASEQUEUE = {**settings.LEASEQUEUE, "SIGNING_KEYS": ["a secret of some length"]}
    made = Job.objects.get(pk=enqueue("told", {"a": 1}).id)
    assert told().signature == sign(made) == made.signature
    assert verify(made)
    made.payload = {"a": 2}
    assert not verify(made)
    settings.LEASEQUEUE = {**settings.LEASEQUEUE, "SIGNING_KEYS": ["another secret, as long"]}
    assert not verify(Job.objects.get(pk=made.pk))
