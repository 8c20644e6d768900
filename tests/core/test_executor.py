"""Whatever a handler does or raises becomes one outcome, and never an error of the worker."""

from __future__ import annotations

import sys

import pytest

from django_leasequeue import (
    Fixed,
    JobError,
    JobResult,
    LeaseLost,
    Reject,
    RejectedJob,
    Retry,
    Skip,
    Snooze,
    enqueue,
)
from django_leasequeue.core.settle import Ending, settle
from django_leasequeue.outcomes import End
from tests.core.arrange import claim_one, job, outcomes, run, write
from tests.unit.test_summarize import BROKEN

pytestmark = [pytest.mark.usefixtures("connection"), pytest.mark.leaves_reserved]


class Sloppy(Skip):
    def __init__(self):
        pass  # without its base


class SloppySnooze(Snooze):
    def __init__(self):
        pass


class Outage(JobError):
    pass


@pytest.fixture
def ends(connection, declare, attempt):
    """Run a handler that does `work` once, settle its outcome, and return it with the row."""

    def run_once(work, payload=None, **policy):
        policy.setdefault("backoff", Fixed(30))
        if work is not None:
            declare("t", **policy)(work)
        made = enqueue("t", payload or {})
        held = claim_one(connection)
        outcome = attempt(held)
        (settled,) = settle(connection, [Ending(held.lease, outcome)])
        row = job(made.id)
        assert settled.status == row.status
        assert len(outcomes(made.id)) == 1
        return outcome, row

    return run_once


def raises(error):
    def work():
        raise error

    return work


@pytest.mark.parametrize(
    ("result", "stored"),
    [
        (None, None),
        ({"a": 1}, {"a": 1}),
        (JobResult.success([1]), [1]),
        (JobResult.success(), {}),
        (0, 0),
    ],
)
def test_what_a_handler_returns(ends, result, stored):
    outcome, row = ends(lambda: result)
    assert outcome.end is End.COMPLETED
    assert (row.status, row.result) == ("done", stored)


@pytest.mark.parametrize(
    ("error", "end", "status", "text"),
    [
        (Skip("no need"), End.SKIPPED, "done", ""),
        (Skip(404), End.SKIPPED, "done", ""),
        (Sloppy(), End.SKIPPED, "done", ""),
        (Snooze(30, "later"), End.SNOOZED, "ready", "later"),
        (Snooze(10**400, 404), End.SNOOZED, "ready", "404"),
        (Snooze(-1), End.FAILED, "ready", "JobError: Snooze: a delay is at least 0 seconds"),
        (Snooze("soon"), End.FAILED, "ready", None),
        (SloppySnooze(), End.SNOOZED, "ready", ""),
        (Retry(30, "busy"), End.FAILED, "ready", "Retry: busy"),
        (Retry(float("nan")), End.FAILED, "ready", "Retry"),
        (Reject("never"), End.REJECTED, "dead", "Reject: never"),
        (RejectedJob("never"), End.REJECTED, "dead", "RejectedJob: never"),
        (Outage("at 7"), End.FAILED, "ready", "Outage: at 7"),
        (ValueError("secret"), End.FAILED, "ready", "ValueError"),
        (LeaseLost("mine"), End.RELEASED, "ready", "LeaseLost"),
        (SystemExit(3), End.FAILED, "ready", "SystemExit"),
        (KeyboardInterrupt(), End.FAILED, "ready", "KeyboardInterrupt"),
        (GeneratorExit(), End.FAILED, "ready", "GeneratorExit"),
    ],
    ids=repr,
)
def test_what_a_handler_raises(ends, error, end, status, text):
    outcome, row = ends(raises(error))
    assert (outcome.end, row.status) == (end, status)
    assert text is None or row.last_error == text


@pytest.mark.parametrize("error", BROKEN, ids=lambda error: type(error).__name__[:20])
def test_errors_that_are_broken_themselves(ends, settings, error):
    """Case D2, all the way into the row."""
    settings.LEASEQUEUE = {"ERROR_DETAIL": "message"}
    outcome, row = ends(raises(error))
    assert (outcome.end, row.status) == (End.FAILED, "ready")
    assert row.last_error


def test_ten_thousand_frames(ends):
    def work():
        limit = sys.getrecursionlimit()
        sys.setrecursionlimit(20_000)
        try:
            down(10_000)
        finally:
            sys.setrecursionlimit(limit)

    def down(levels):
        return down(levels - 1) if levels else 1 / 0

    assert ends(work)[1].last_error in ("ZeroDivisionError", "RecursionError")


class Transient(Exception):
    pass


def test_permanent_errors(ends):
    outcome, row = ends(raises(Transient()), permanent=(LookupError, Transient))
    assert (outcome.end, row.status) == (End.REJECTED, "dead")


@pytest.mark.parametrize(
    "backoff", [lambda e, c: -5, lambda e, c: float("nan"), lambda e, c: "x", lambda e, c: 1 / 0]
)
def test_a_backoff_that_is_broken(ends, backoff):
    """Case E3: the default stands in, and the job is tried again."""
    outcome, row = ends(raises(ValueError()), backoff=backoff)
    assert row.status == "ready"
    assert 2.5 <= outcome.delay <= 5


@pytest.mark.parametrize("backoff", [Fixed(7), lambda error, context: 6 + context.attempt])
def test_a_backoff_that_works(ends, backoff):
    assert ends(raises(ValueError()), backoff=backoff)[0].delay == 7


def test_an_unknown_job_type(ends):
    outcome, row = ends(None)
    assert (outcome.end, row.status) == (End.REJECTED, "dead")
    assert row.last_error == "UnknownJobType: Unsupported job type"
    assert row.lease_until is None  # no hook to run


@pytest.mark.parametrize("payload", ['{"z": 1}', "[1]", "null"])
def test_a_payload_that_another_language_wrote_wrong(connection, declare, attempt, payload):
    calls = []
    declare("t", failed=lambda context, error: None)(lambda a: calls.append(a))  # noqa: PLW0108
    run(connection, "INSERT INTO leasequeue_job (job_type, payload) VALUES ('t', %s)", [payload])
    held = claim_one(connection)
    outcome = attempt(held)
    assert settle(connection, [Ending(held.lease, outcome)])[0].status == "dead"
    row = job(held.job_id)
    assert row.last_error.startswith("RejectedJob: Malformed job payload")
    assert row.lease_until is None
    assert calls == []


def test_what_the_context_tells(connection, declare, attempt):
    seen = {}

    @declare("t", takes_context=True)
    def handler(context, a):
        names = ("job_id", "job_type", "queue", "payload", "attempt", "max_attempts", "claims")
        seen.update({name: getattr(context, name) for name in names})
        seen["last"], seen["key"] = context.is_last_attempt, context.idempotency_key
        seen["effect"] = {context.effect_key("a"), context.effect_key("a"), context.effect_key("b")}

    made = enqueue("t", {"a": 1}, key="k", max_attempts=2)
    write(connection, made.id, attempts=1, claims=6)
    assert attempt(claim_one(connection)).end is End.COMPLETED
    assert len(seen.pop("effect")) == 2
    assert seen == {
        "job_id": made.id,
        "job_type": "t",
        "queue": "default",
        "payload": {"a": 1},
        "attempt": 2,
        "max_attempts": 2,
        "claims": 7,
        "last": True,
        "key": job(made.id).idempotency_key,
    }
