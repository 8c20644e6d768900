"""Not every IntegrityError is a taken key, and a key is no excuse for a bad payload."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import IntegrityError, transaction

from django_leasequeue import EnqueueError, enqueue, enqueue_many
from django_leasequeue.models import Job
from tests.core.interleave import at_statement
from tests.core.reports import make_report, reports

#: A NULL, a foreign key, a check and MariaDB's invalid JSON are IntegrityErrors as well.
OTHERS: dict[str, list[Any]] = {
    "mysql": [4025, 1048, 1452, 3819],
    "postgresql": ["23502", "23503", "23514"],
    "sqlite": ["NOT NULL constraint failed: leasequeue_job.payload", "CHECK constraint failed: x"],
}


def ask(many: bool, payload: dict[str, Any]) -> None:
    enqueue_many([("t", payload, {"key": "k"})]) if many else enqueue("t", payload, key="k")


def integrity_error(connection: Any, code: Any) -> IntegrityError:
    if connection.vendor == "postgresql":
        cause = connection.Database.errors.lookup(code)("injected by a test")
    else:
        cause = connection.Database.IntegrityError(code, "injected by a test")
    error = IntegrityError(*cause.args)
    error.__cause__ = cause
    return error


@pytest.mark.parametrize("many", [False, True])
@pytest.mark.parametrize("value", [float("nan"), "\ud800", 2**70])
def test_a_payload_that_cannot_be_stored_under_a_taken_key(connection, many, value):
    """C8, D5: the error is about the payload, and the caller's transaction goes on."""
    enqueue("t", {}, key="k")
    with transaction.atomic():
        make_report("before")
        with pytest.raises(EnqueueError, match="payload"):
            ask(many, {"n": value})
        make_report("after")
    assert reports() == ["after", "before"]
    assert Job.objects.count() == 1


@pytest.mark.parametrize("many", [False, True])
def test_other_integrity_errors_are_raised(connection, many):
    """C8: only 1062, 23505 and SQLite's UNIQUE are a taken key."""
    for code in OTHERS[connection.vendor]:
        error = integrity_error(connection, code)

        def refuse(error: IntegrityError = error) -> None:
            raise error

        with at_statement(connection, "INSERT", refuse) as hit, pytest.raises(IntegrityError):
            ask(many, {})
        assert hit
    assert not Job.objects.exists()
    assert enqueue("t", {}, key="k").created
