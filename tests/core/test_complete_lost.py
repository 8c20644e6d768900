"""A completion whose COMMIT answer was lost is resolved by its attempt row, on a new connection."""

from __future__ import annotations

from contextlib import ExitStack

import pytest
from django.db import connections

from django_leasequeue import cancel
from django_leasequeue.core import attempts
from django_leasequeue.core.recover import recover_batch
from django_leasequeue.core.settle import Ending, Verdict, settle
from django_leasequeue.outcomes import End
from django_leasequeue.runtime import completion
from tests.core.arrange import expire, job, outcomes, running
from tests.core.reports import make_report, reports
from tests.faults import RECONNECT, Fault, broken, severs
from tests.waiting import wait_until

pytestmark = [
    pytest.mark.usefixtures("connection"),
    pytest.mark.leaves_reserved,
    pytest.mark.only_on("mariadb", "mysql", "postgres"),
]


@pytest.fixture(params=["complete", "atomic"])
def losing(request, connection, declare):
    """Declares a handler whose COMMIT's answer is lost, before or after the server did it."""
    code = next(code for code in RECONNECT[connection.vendor] if severs(code))
    struck, faults = [], ExitStack()

    def effects(when, context):
        make_report(str(context.claims))
        struck.append(Fault(code, match=lambda sql: sql == "COMMIT", when=when))
        # To the end of this attempt, whose connection is its own.
        faults.enter_context(broken(connections["default"], struck[-1]))

    def declare_handler(when):
        if request.param == "atomic":
            declare("arranged", takes_context=True, atomic=True)(
                lambda context, n: effects(when, context)
            )
            return

        @declare("arranged", takes_context=True)
        def handler(context, n):
            with context.complete({"n": n}):
                effects(when, context)

    yield declare_handler
    faults.close()
    assert [fault.fired for fault in struck] == [1]


def test_applied(connection, attempt, losing):
    losing("after")
    (held,) = running(connection)
    outcome = attempt(held)
    assert (outcome.end, outcome.settled) == (End.COMPLETED, True)
    assert job(held.job_id).status == "done"
    assert (outcomes(held.job_id), reports()) == (["completed"], ["1"])


def test_not_applied(connection, attempt, losing):
    losing("before")
    (held,) = running(connection)
    outcome = attempt(held)
    assert (outcome.end, outcome.settled) == (End.FAILED, False)
    assert reports() == []
    wait_until(
        lambda: settle(connection, [Ending(held.lease, outcome)])[0].verdict is Verdict.SETTLED
    )
    assert (job(held.job_id).status, outcomes(held.job_id)) == ("ready", ["failed"])


def recovered(connection, job_id):
    expire(connection, job_id)
    return bool(recover_batch(connection))


def cancelled(connection, job_id):
    return bool(cancel(job_id))


@pytest.mark.parametrize("way", [recovered, cancelled])
def test_not_applied_and_ended_by_others_meanwhile(connection, attempt, losing, monkeypatch, way):
    """The attempt row that is found tells of another end: this completion did not happen."""
    real = attempts.resolve

    def resolve(own, lease, *rest):
        # The row is free as soon as the server has noticed.
        wait_until(lambda: way(connection, lease.job_id))
        return real(own, lease, *rest)

    connection.inc_thread_sharing()
    monkeypatch.setattr(completion, "resolve", resolve)
    losing("before")
    (held,) = running(connection)
    outcome = attempt(held)
    connection.dec_thread_sharing()
    assert not outcome.settled
    assert reports() == []
    assert outcomes(held.job_id) == [{recovered: "expired", cancelled: "cancelled"}[way]]
    (settled,) = settle(connection, [Ending(held.lease, outcome)])
    assert settled.verdict is Verdict.LOST
