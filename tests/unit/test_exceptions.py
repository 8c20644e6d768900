"""What handlers raise: reasons are text, interrupts are not for `except Exception`."""

from __future__ import annotations

import pickle

import pytest

from django_leasequeue import (
    EnqueueError,
    JobCancelled,
    JobTimeout,
    KeyTaken,
    LeaseLost,
    LeaseQueueError,
    Reject,
    Retry,
    Skip,
    Snooze,
)


@pytest.mark.parametrize("interrupt", [LeaseLost, JobTimeout, JobCancelled])
def test_a_handler_cannot_eat_an_interrupt_by_accident(interrupt):
    assert not issubclass(interrupt, Exception)


@pytest.mark.parametrize(
    "error", [Skip("r"), Snooze(5, "r"), Retry(5, "r"), Reject("r")], ids=lambda e: type(e).__name__
)
def test_a_reason_is_kept(error):
    assert isinstance(error, LeaseQueueError)
    assert vars(error)["reason"] == str(error) == "r"


@pytest.mark.parametrize(
    "make", [lambda: Skip(404), lambda: Snooze(5, 404), lambda: Retry(5, 404), lambda: Reject(404)]
)
def test_a_reason_that_is_no_text_becomes_one(make):
    assert vars(make())["reason"] == "404"


def test_a_refused_enqueue_is_a_value_error():
    assert issubclass(EnqueueError, ValueError)
    assert issubclass(KeyTaken, EnqueueError)
    assert KeyTaken("taken", 7).job_id == 7


@pytest.mark.parametrize("error", [Snooze(5, "r"), Retry(5, "r"), KeyTaken("taken", 7)])
def test_errors_cross_a_pipe(error):
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error)
    assert vars(again) == vars(error)
