"""Backoffs that return what is no delay: the default stands in, and the job is not lost."""

from __future__ import annotations

import math
from datetime import timedelta
from typing import Any

import pytest

from django_leasequeue import Exponential, Fixed, Linear, Retry, enqueue
from tests.core.arrange import history, job
from tests.faults import watching
from tests.field.workers import working

#: The default's after a first attempt: half of 5 s to all of it.
DEFAULT = (2.5, 5.0)


class Broken(Exception):
    pass


def raising(error: BaseException) -> Any:
    def backoff(exception, context):
        raise error

    return backoff


def returning(value: Any) -> Any:
    return lambda exception, context: value


NO_DELAYS: dict[str, Any] = {
    "-5": returning(-5),
    "NaN": returning(math.nan),
    "1e400": returning(1e400),
    "-1e400": returning(-1e400),
    "a huge integer": returning(10**400),
    "timedelta.max": returning(timedelta.max),
    "timedelta.min": returning(timedelta.min),
    "None": returning(None),
    "text": returning("5"),
    "bool": returning(True),
    "list": returning([5]),
    "raises": raising(Broken()),
    "overflows": lambda exception, context: math.exp(5000),
    "exits": raising(SystemExit(3)),
    "is interrupted": raising(KeyboardInterrupt()),
    "takes other arguments": lambda: 5,
}
DELAYS: dict[str, tuple[Any, float, float]] = {
    "zero": (returning(0), 0, 0),
    "timedelta": (returning(timedelta(minutes=3)), 180, 180),
    "float": (returning(0.25), 0.25, 0.25),
    "fixed": (Fixed(90), 90, 90),
    "linear": (Linear(base=7), 7, 7),
    "exponential": (Exponential(base=2, cap=8), 1, 2),
    "a year": (returning(timedelta(days=365)), 365 * 86400, 365 * 86400),
}


def failed_once(declare: Any, backoff: Any, error: Exception | None = None) -> tuple[float, int]:
    """Run one failing attempt in a worker.

    Return the seconds the job then has to wait, and how often the backoff was said to be wrong.
    """

    @declare("failing", backoff=backoff)
    def handler():
        raise error or Broken

    job_id = enqueue("failing").id
    with watching() as moments, working(max_jobs=1):
        moments.wait("job_failed", job_id=job_id)
    after = job(job_id)
    (attempt,) = history(job_id)
    assert (after.status, attempt.outcome) == ("ready", "failed")
    assert attempt.error_class.rpartition(".")[2] == type(error or Broken()).__name__
    waits = (after.available_at - attempt.finished_at).total_seconds()
    assert waits > -0.01  # never in the past of the moment at which it failed
    return waits, len(moments.named("backoff_failed"))


@pytest.mark.parametrize("backoff", NO_DELAYS.values(), ids=NO_DELAYS)
def test_what_is_no_delay_becomes_the_default(connection, declare, backoff, request):
    """E3: nothing a backoff does breaks the failure path, or sends the job out of sight."""
    waits, said = failed_once(declare, backoff)
    assert DEFAULT[0] - 0.5 <= waits <= DEFAULT[1] + 0.5
    leaves_it = "None" in request.node.name  # None is how a backoff leaves it to the default
    assert said == (0 if leaves_it else 1)


@pytest.mark.parametrize(("backoff", "low", "high"), DELAYS.values(), ids=DELAYS)
def test_what_is_a_delay_is_kept(connection, declare, backoff, low, high):
    waits, said = failed_once(declare, backoff)
    assert (low - 0.5 <= waits <= high + 0.5, said) == (True, 0)


@pytest.mark.parametrize("delay", [-5, math.nan, 1e400, timedelta.max, "5"], ids=str)
def test_a_retry_with_what_is_no_delay(connection, declare, delay):
    """E3: the same for `raise Retry(delay)`."""
    waits, _said = failed_once(declare, Fixed(90), Retry(delay, "later"))
    assert DEFAULT[0] - 0.5 <= waits <= DEFAULT[1] + 0.5


@pytest.mark.parametrize("attempts", [1, 43, 70, 1100, 5000])
@pytest.mark.parametrize("base", [2, 1e-9])
def test_many_attempts_end_at_the_cap(connection, declare, base, attempts):
    """E3: no overflow however often the job has failed."""
    strategy = Exponential(base=base, cap=600)

    @declare("failing", backoff=strategy)
    def handler():
        raise Broken

    job_id = enqueue("failing", max_attempts=32_767).id
    with connection.cursor() as cursor:
        cursor.execute("UPDATE leasequeue_job SET attempts = %s", [attempts - 1])
    with watching() as moments, working(max_jobs=1):
        moments.wait("job_failed", job_id=job_id, attempt=attempts)
    waits = (job(job_id).available_at - history(job_id)[0].finished_at).total_seconds()
    assert -0.01 < waits <= 600.5
    if base * 2.0 ** min(attempts, 60) > 1200:
        assert waits >= 300
