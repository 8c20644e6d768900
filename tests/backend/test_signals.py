"""task_finished is told once of every task that ended in a worker."""

from __future__ import annotations

import sys
from contextlib import contextmanager

import pytest

from django_leasequeue import Reject, job
from django_leasequeue.backend.compat import TaskResultStatus, task_finished, task_started
from django_leasequeue.models import Job
from django_leasequeue.registry import registry
from django_leasequeue.testing import run_jobs
from tests.backend import sample

pytestmark = pytest.mark.django_db


@contextmanager
def heard(signal):
    """Collect status, and the exception's class, of each sending."""
    found = []

    def note(sender, task_result, **kwargs):
        kind = sys.exc_info()[0]
        found.append((task_result.id, task_result.status, kind and kind.__name__))

    signal.connect(note)
    try:
        yield found
    finally:
        signal.disconnect(note)


def test_a_task_that_was_removed_is_told_of():
    result = sample.noop.enqueue(1)
    Job.objects.update(job_type="tests.backend.sample.removed")
    with heard(task_finished) as finished:
        run_jobs()
    assert finished == [(result.id, TaskResultStatus.FAILED, "UnknownJobType")]


def test_a_task_whose_arguments_do_not_fit_any_more_is_told_of():
    result = sample.double.enqueue(1)
    Job.objects.update(payload={"args": [1, 2], "kwargs": {}})
    with heard(task_finished) as finished, heard(task_started) as started:
        run_jobs()
    assert finished == [(result.id, TaskResultStatus.FAILED, "RejectedJob")]
    assert started == []


def test_a_task_whose_signature_is_not_right_is_not_told_of(settings):
    settings.LEASEQUEUE = {**settings.LEASEQUEUE, "SIGNING_KEYS": ["k" * 20]}
    right, wrong = sample.double.enqueue(1), sample.double.enqueue(1)
    Job.objects.filter(pk=wrong.id).update(payload={"args": [2], "kwargs": {}})
    with heard(task_finished) as finished:
        run_jobs()
    assert [told[0] for told in finished] == [right.id]


def test_a_skipped_task_succeeded_and_no_exception_is_logged():
    result = sample.skips.enqueue()
    with heard(task_finished) as finished:
        run_jobs()
    assert finished == [(result.id, TaskResultStatus.SUCCESSFUL, None)]


def test_an_alias_that_is_gone_from_settings():
    result = sample.noop.enqueue()
    Job.objects.update(payload={"args": [], "kwargs": {}, "backend": "gone"})
    with heard(task_finished) as finished:
        run_jobs()
    assert finished == [(result.id, TaskResultStatus.SUCCESSFUL, None)]


def test_a_job_with_the_payload_of_a_task_is_none():
    @job("other.bridge")
    def bridge(args, kwargs):
        raise Reject("no")

    bridge.enqueue([1], {})
    with heard(task_finished) as finished, heard(task_started) as started:
        run_jobs()
    registry.remove("other.bridge")
    assert (started, finished) == ([], [])
