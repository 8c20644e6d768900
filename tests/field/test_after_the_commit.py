"""What comes after the COMMIT changes nothing of it; and its answer may not come at all."""

from __future__ import annotations

from contextlib import nullcontext

import pytest
from django.db import connections, transaction

from django_leasequeue.core.settle import Ending, Verdict, settle
from tests.core.arrange import claim_one, job, outcomes, running, shift
from tests.core.reports import make_report, reports
from tests.faults import Fault, broken_everywhere, watching

LOST = {"mysql": 2013, "postgresql": "08006", "sqlite": "database is locked"}


@pytest.fixture(params=["complete", "atomic"])
def declared(request, declare):
    """A handler that writes a report and registers these callbacks, to be run on_commit."""

    def make(*callbacks, robust: bool = False):
        atomic = request.param == "atomic"

        @declare("arranged", takes_context=True, atomic=atomic)
        def handler(context, n):
            with nullcontext() if atomic else context.complete({"n": n}):
                make_report(f"{context.job_id}-{context.claims}")
                for callback in callbacks:
                    transaction.on_commit(callback, robust=robust)

    return make


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("robust", [False, True])
def test_a_callback_that_raises(connection, declared, attempt, robust, caplog):
    """C1: the job is done, once; the error is logged; nothing is tried again."""
    called: list[int] = []
    declared(lambda: 1 / 0, lambda: called.append(1), robust=robust)
    (claimed,) = running(connection)
    with watching() as moments:
        outcome = attempt(claimed)
    assert (outcome.end, outcome.settled) == ("completed", True)
    assert (job(claimed.job_id).status, outcomes(claimed.job_id)) == ("done", ["completed"])
    assert reports() == [f"{claimed.job_id}-1"]
    if robust:  # Django has logged it and gone on to the second
        assert called == [1]
        assert "ZeroDivisionError" in caplog.text
    else:
        (event,) = moments.named("on_commit_failed")
        assert event["error"] == "ZeroDivisionError"


def test_a_callback_that_breaks_the_connection(connection, declared, attempt):
    """C1: an error of the database after the commit is not the commit's."""
    declared(lambda: connections["default"].cursor().execute("SELECT no_such_column"))
    (claimed,) = running(connection)
    assert attempt(claimed).settled
    assert (job(claimed.job_id).status, len(reports())) == ("done", 1)


@pytest.mark.parametrize("when", ["before", "after"])
def test_the_answer_to_the_commit_is_lost(connection, declared, attempt, when):
    """C5: done, if the server did it; a failed attempt, and its effect the next time, if not."""
    if connection.vendor == "sqlite" and when == "after":
        pytest.skip("has no answer on the way")
    declared()
    (claimed,) = running(connection)
    fault = Fault(LOST[connection.vendor], when=when, match=lambda sql: sql == "COMMIT")
    with broken_everywhere(fault):
        outcome = attempt(claimed)
    assert fault.fired == 1
    if when == "after":
        assert outcome.settled
    else:
        assert (outcome.end, outcome.settled, reports()) == ("failed", False, [])
        (settled,) = settle(connection, [Ending(claimed.lease, outcome)])
        assert settled.verdict is Verdict.SETTLED
        shift(connection, claimed.job_id, "available_at", -1)
        assert attempt(claim_one(connection)).settled
    assert job(claimed.job_id).status == "done"
    assert outcomes(claimed.job_id) == ["failed"] * (when == "before") + ["completed"]
    assert len(reports()) == 1
