"""Once it is committed a completion stands, whatever is raised after it."""

from __future__ import annotations

import logging

import pytest
from django.db import transaction

from django_leasequeue.outcomes import End
from tests.core.arrange import job, outcomes, running
from tests.core.reports import make_report, reports

pytestmark = [pytest.mark.usefixtures("connection"), pytest.mark.leaves_reserved]


def test_a_callback_that_raises_after_the_commit(connection, attempt, effects, caplog):
    """Case C14: the job is done, whatever comes after; it is told in the log."""
    calls = []

    def work(context):
        make_report()
        transaction.on_commit(lambda: calls.append(job(context.job_id).status))
        transaction.on_commit(lambda: 1 / 0)

    effects(work)
    (held,) = running(connection)
    with caplog.at_level(logging.ERROR, "django_leasequeue"):
        outcome = attempt(held)
    assert (outcome.end, outcome.settled) == (End.COMPLETED, True)
    assert calls == ["done"]
    assert reports() == ["k"]
    assert [record.event for record in caplog.records] == ["on_commit_failed"]
    assert caplog.records[0].fields["error"] == "ZeroDivisionError"


def test_an_error_after_the_block_comes_too_late(connection, declare, attempt, caplog):
    @declare("arranged", takes_context=True)
    def handler(context, n):
        with context.complete():
            make_report()
        raise ValueError

    (held,) = running(connection)
    with caplog.at_level(logging.ERROR, "django_leasequeue"):
        outcome = attempt(held)
    assert (outcome.end, outcome.settled) == (End.COMPLETED, True)
    assert [record.event for record in caplog.records] == ["handler_failed_after_completion"]
    assert outcomes(held.job_id) == ["completed"]


def test_once_only(connection, declare, attempt):
    errors = []

    @declare("arranged", takes_context=True)
    def handler(context, n):
        with context.complete():
            make_report()
        try:
            with context.complete():
                make_report("again")
        except Exception as error:  # noqa: BLE001  (looked at below)
            errors.append(str(error))

    (held,) = running(connection)
    assert attempt(held).settled
    assert errors == ["complete() was called twice for one job"]
    assert reports() == ["k"]
