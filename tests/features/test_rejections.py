"""S1, S2: jobs that can never run are dead at once, and no handler sees them."""

from __future__ import annotations

import pytest

from django_leasequeue import enqueue
from django_leasequeue.outcomes import End
from tests.core.arrange import outcomes, run, write

pytestmark = pytest.mark.usefixtures("connection")


@pytest.fixture
def calls(declare):
    """The calls of a handler, and of its hook, that may never be called."""
    seen = []
    declare("invoice.pdf", failed=lambda context, error: seen.append(error))(
        lambda invoice_id: seen.append(invoice_id)  # noqa: PLW0108
    )
    return seen


def rejected(finish, text):
    outcome, row = finish()
    assert (outcome.end, row.status, outcomes(row.pk)) == (End.REJECTED, "dead", ["rejected"])
    assert row.last_error.startswith(text)
    assert (row.attempts, row.lease_until) == (1, None)  # no second try, and no hook is due


@pytest.mark.parametrize(
    "payload",
    ["{}", '{"invoice_id": 1, "other": 2}', "[7]", "7", "null", '"text"'],
)
def test_a_malformed_payload_is_rejected(connection, calls, finish, payload):
    """S1: validate at consumption time; another program may have written it."""
    sql = "INSERT INTO leasequeue_job (job_type, payload) VALUES ('invoice.pdf', %s)"
    run(connection, sql, [payload])
    rejected(finish, "RejectedJob: Malformed job payload")
    assert calls == []


def test_a_type_that_is_not_found_is_rejected(finish):
    enqueue("no.such.type")
    rejected(finish, "UnknownJobType: Unsupported job type")


@pytest.mark.parametrize(
    ("signature", "text"), [("", "Missing signature"), ("f" * 64, "Invalid signature")]
)
def test_a_signature_that_is_not_right_is_rejected(
    connection, calls, finish, settings, signature, text
):
    settings.LEASEQUEUE = {**settings.LEASEQUEUE, "SIGNING_KEYS": ["a secret of some length"]}
    made = enqueue("invoice.pdf", {"invoice_id": 7})
    write(connection, made.id, signature=signature)
    rejected(finish, f"RejectedJob: {text}")
    assert calls == []


def test_without_keys_nothing_is_signed_or_checked(connection, calls, finish):
    """S2: signing is off by default."""
    made = enqueue("invoice.pdf", {"invoice_id": 7})
    write(connection, made.id, signature="f" * 64)
    assert finish()[1].status == "done"
    assert calls == [7]
