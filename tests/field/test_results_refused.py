"""A result that cannot be stored is known before the commit, so its effect goes with it."""

from __future__ import annotations

import datetime
from contextlib import nullcontext
from decimal import Decimal

import pytest

from django_leasequeue.core.settle import Ending, settle
from django_leasequeue.results import JobResult
from tests.core.arrange import job, outcomes, running
from tests.core.reports import make_report, reports

CIRCLE: list[object] = []
CIRCLE.append(CIRCLE)
DEEP: object = 1
for _ in range(10_000):
    DEEP = [DEEP]
RESULTS = {
    "object": object(),
    "set": {1, 2},
    "bytes": b"x",
    "NaN": float("nan"),
    "Infinity": [float("inf")],
    "NUL": "\x00",
    "lone surrogate": {"a": "\ud800"},
    "20 MB": "x" * 20_000_000,
    "circle": CIRCLE,
    "deep": DEEP,
    "2**70": 2**70,
    "Decimal": Decimal(1),
    "datetime": datetime.datetime(2042, 1, 1, tzinfo=datetime.UTC),
    "key that is no text": {1: 2},
}


@pytest.mark.parametrize("way", ["complete", "atomic", "plain", "JobResult"])
@pytest.mark.parametrize("result", RESULTS.values(), ids=RESULTS)
def test_it_is_a_failed_attempt_without_an_effect(connection, declare, attempt, way, result):
    """C7: attempts are consumed as usual, the text says what is wrong, and shows no values."""

    @declare("arranged", takes_context=True, atomic=way == "atomic")
    def handler(context, n):
        with context.complete(result) if way == "complete" else nullcontext():
            if way in ("complete", "atomic"):
                make_report()
        return JobResult.success(result) if way == "JobResult" else result

    (claimed,) = running(connection, max_attempts=1)
    outcome = attempt(claimed)
    assert (outcome.end, outcome.settled) == ("failed", False)
    settle(connection, [Ending(claimed.lease, outcome)])
    row = job(claimed.job_id)
    assert (row.status, row.result, outcomes(row.pk)) == ("dead", None, ["failed"])
    assert row.last_error.startswith("JobError: the result cannot be stored: ")
    assert len(row.last_error) < 200
    assert reports() == []
