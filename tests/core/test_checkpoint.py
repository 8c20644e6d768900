"""The checkpoint: stands or falls with the caller's transaction, and outlives the attempt."""

from __future__ import annotations

import json

import pytest
from django.db import transaction

from django_leasequeue import LeaseLost, cancel, requeue
from django_leasequeue.core.bury import take_burials
from django_leasequeue.core.checkpoint import save_checkpoint
from django_leasequeue.core.recover import recover_batch
from django_leasequeue.core.settle import Ending, settle
from django_leasequeue.outcomes import End, Outcome
from tests.core.arrange import claim_one, expire, job, running, shift
from tests.statements import count_statements

pytestmark = [pytest.mark.usefixtures("connection"), pytest.mark.leaves_reserved]

TEXT = '{"page": 3, "é": ["😀", 1.5, null]}'


def save(connection, held, text: str = TEXT, seconds: float = 60) -> None:
    with connection.cursor() as cursor:
        save_checkpoint(connection, cursor, held.lease, text, seconds)


def test_what_it_writes(connection):
    (held,) = running(connection)
    shift(connection, held.job_id, "lease_until", 5)
    before = job(held.job_id)
    with count_statements(connection) as statements:
        save(connection, held, seconds=90)
    assert len(statements) == 1
    row = job(held.job_id)
    assert row.checkpoint == json.loads(TEXT)
    assert (row.lease_until - row.updated_at).total_seconds() == pytest.approx(90, abs=0.1)
    for name in ("status", "attempts", "claims", "lease_token", "claimed_at", "available_at"):
        assert getattr(row, name) == getattr(before, name)


def test_the_last_one_counts(connection):
    (held,) = running(connection)
    for text in ("[1]", "null", "[1]", '"x"', '"x"'):
        save(connection, held, text)
    assert job(held.job_id).checkpoint == "x"


def test_autocommit_commits_it(connection, session):
    (held,) = running(connection)
    save(session(), held)
    assert job(held.job_id).checkpoint == json.loads(TEXT)


def test_it_commits_with_the_callers_transaction(connection, session):
    (held,) = running(connection)
    with transaction.atomic():
        save(connection, held)
        assert seen_by(session(), held) is None
    assert job(held.job_id).checkpoint == json.loads(TEXT)


def seen_by(connection, held):
    with connection.cursor() as cursor:
        cursor.execute("SELECT checkpoint FROM leasequeue_job WHERE id = %s", [held.job_id])
        return cursor.fetchone()[0]


def test_it_is_rolled_back_with_the_callers_transaction(connection):
    (held,) = running(connection)
    save(connection, held, "[1]")
    before = job(held.job_id)
    with transaction.atomic():
        save(connection, held, "[2]", 600)
        transaction.set_rollback(True)
    after = job(held.job_id)
    assert (after.checkpoint, after.lease_until) == ([1], before.lease_until)


@pytest.mark.parametrize(
    "outcome",
    [
        Outcome(End.FAILED),
        Outcome(End.RELEASED),
        Outcome(End.RELEASED, started=False),
        Outcome(End.SNOOZED),
        Outcome(End.TIMED_OUT),
        Outcome(End.CRASHED),
    ],
    ids=lambda outcome: f"{outcome.end} {outcome.started}",
)
def test_the_next_attempt_has_it(connection, outcome):
    (held,) = running(connection)
    assert held.checkpoint is None
    save(connection, held)
    settle(connection, [Ending(held.lease, outcome)])
    assert json.loads(str(claim_one(connection).checkpoint)) == json.loads(TEXT)


def test_the_next_attempt_after_an_expiry_has_it(connection):
    (held,) = running(connection)
    save(connection, held)
    expire(connection, held.job_id)
    recover_batch(connection)
    assert json.loads(str(claim_one(connection).checkpoint)) == json.loads(TEXT)


@pytest.mark.parametrize("end", [End.REJECTED, None], ids=["dead", "cancelled"])
def test_a_requeue_keeps_it(connection, end):
    (held,) = running(connection)
    save(connection, held)
    if end is None:
        cancel(held.job_id)
    else:
        settle(connection, [Ending(held.lease, Outcome(end))])
    assert requeue(held.job_id) == [held.job_id]
    assert json.loads(str(claim_one(connection).checkpoint)) == json.loads(TEXT)


def test_a_burial_has_none_to_save(connection):
    (held,) = running(connection)
    settle(connection, [Ending(held.lease, Outcome(End.REJECTED, bury=True))])
    (burial,) = take_burials(
        connection, with_hook=["arranged"], without_hook=[], worker="w", seconds=60
    )
    with pytest.raises(LeaseLost):
        save(connection, burial)
    assert job(held.job_id).checkpoint is None
