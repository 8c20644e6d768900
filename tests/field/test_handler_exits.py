"""What a handler raises or leaves behind ends its attempt, not its worker."""

from __future__ import annotations

import asyncio
import sys
import threading

import pytest

from django_leasequeue import Fixed, enqueue
from tests.core.arrange import job, outcomes
from tests.core.reports import make_report, reports
from tests.faults import watching
from tests.field.workers import drain, working


def exits_with_text():
    sys.exit("x")


def recurses():
    recurses()


def raising(error):
    def handler():
        raise error

    return handler


ENDS = {
    "SystemExit(0)": raising(SystemExit(0)),
    "KeyboardInterrupt": raising(KeyboardInterrupt()),
    "GeneratorExit": raising(GeneratorExit()),
    "CancelledError": raising(asyncio.CancelledError()),
    "sys.exit('x')": exits_with_text,
    "RecursionError": recurses,
    "MemoryError": raising(MemoryError()),
    "StopIteration": raising(StopIteration()),
    "BaseException": raising(BaseException("bare")),
}
CLASSES = {"SystemExit(0)": "SystemExit", "sys.exit('x')": "SystemExit"}


@pytest.mark.parametrize("form", ["plain", "atomic", "completing"])
def test_each_is_a_failed_attempt_and_the_worker_goes_on(connection, declare, form):
    """F5: whatever it derives from, and wherever it is raised."""
    ids = {}
    for name, ending in ENDS.items():
        policy = {"atomic": True, "timeout": 1} if form == "atomic" else {}
        declare(name, backoff=Fixed(0), takes_context=True, **policy)(_in_form(form, ending))
        ids[name] = enqueue(name, max_attempts=2).id
    declare("after")(lambda: None)
    after = enqueue("after").id
    drain()
    for name, job_id in ids.items():
        ended = job(job_id)
        assert (ended.status, ended.attempts) == ("dead", 2), name
        assert ended.last_error.split(":")[0] == CLASSES.get(name, name), name
        assert outcomes(job_id) == ["failed", "failed"], name
    assert outcomes(after) == ["completed"]
    assert reports() == []


def _in_form(form, ending):
    def handler(context):
        if form == "atomic":
            make_report(context.idempotency_key)
        if form == "completing":
            with context.complete():
                make_report(context.idempotency_key)
                ending()
        ending()

    return handler


def test_a_daemon_thread_that_a_handler_leaves_alive_is_no_bother(connection, declare):
    """F5: the attempt completes, the next job runs, and the worker ends while it still lives."""
    release = threading.Event()
    left: list[threading.Thread] = []

    @declare("leaves a thread")
    def handler():
        left.append(threading.Thread(target=release.wait, name="left alive", daemon=True))
        left[0].start()

    declare("after")(lambda: None)
    first, second = enqueue("leaves a thread").id, enqueue("after").id
    try:
        with watching() as moments, working():
            moments.wait("job_completed", job_id=first)
            moments.wait("job_completed", job_id=second)
        assert left[0].is_alive()
    finally:
        release.set()
        left[0].join()
    assert (outcomes(first), outcomes(second)) == (["completed"], ["completed"])
