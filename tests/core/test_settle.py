"""Settle: how attempts ended and what their jobs become, in one transaction."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.db import DatabaseError

from django_leasequeue import enqueue
from django_leasequeue.core.settle import Ending, Verdict, settle
from django_leasequeue.outcomes import GIVE_BACK_LIMIT, End, ErrorSummary, Outcome, transition
from django_leasequeue.statuses import FINAL, Status
from tests.core.arrange import WORKER, claim_one, history, job, outcomes, running, snapshot, write
from tests.core.interleave import at_statement
from tests.statements import count_statements
from tests.unit.budgets import budget

pytestmark = [pytest.mark.usefixtures("connection"), pytest.mark.leaves_reserved]

UPDATE = r"settle \*/ (WITH ended AS \()?UPDATE"
ERROR = ErrorSummary("ValueError", "ValueError: é😀", ("a.py:1 f", "b.py:2 g"), "ab" * 8)
COUNTERS: dict[str, dict[str, int]] = {
    "first attempt": {},
    "last attempt": {"attempts": 5},
    "last crash": {"attempts": 2, "crashes": 2},
    "released often": {"attempts": 2, "releases": 20},
    "no attempt left to give back": {"attempts": 0},
}


def settle_one(connection, held, end: End, **options: Any):
    (settled,) = settle(connection, [Ending(held.lease, Outcome(end, **options))])
    assert settled.verdict is Verdict.SETTLED
    return settled


@pytest.mark.parametrize("end", End)
@pytest.mark.parametrize("counters", COUNTERS.values(), ids=COUNTERS)
@pytest.mark.parametrize("started", [True, False])
def test_what_every_end_spends(connection, end, counters, started):
    """The database says what the table of the design says."""
    (held,) = running(connection)
    if counters:
        write(connection, held.job_id, **counters)
    outcome = Outcome(end, delay=30, started=started)
    before = budget(**counters)
    change = transition(outcome, before)
    due = job(held.job_id).available_at
    (settled,) = settle(connection, [Ending(held.lease, outcome)])
    row = job(held.job_id)
    assert settled.status == change.status == row.status
    assert row.attempts == before.attempts + change.attempts
    assert row.crashes == before.crashes + change.crashes
    assert row.releases == change.releases
    assert outcomes(row.id) == ([end.value] if outcome.recorded else [])
    assert (row.claims, row.lease_token) == (1, None)
    assert (row.finished_at is not None) == (change.status in FINAL)
    if end is End.RELEASED:
        assert row.available_at == due
    elif row.status == Status.READY:
        assert (row.available_at - row.updated_at).total_seconds() == pytest.approx(30, abs=0.1)


@pytest.mark.parametrize("started", [True, False])
def test_a_released_job_goes_before_what_was_enqueued_since(connection, started):
    (held,) = running(connection)
    later = enqueue("t")
    settle_one(connection, held, End.RELEASED, started=started)
    assert claim_one(connection).job_id == held.job_id
    assert claim_one(connection).job_id == later.id


def test_a_job_given_back_before_its_start_is_as_it_was(connection):
    (held,) = running(connection, max_attempts=1)
    for _ in range(GIVE_BACK_LIMIT + 2):
        settle_one(connection, held, End.RELEASED, started=False)
        held = claim_one(connection)
    row = job(held.job_id)
    assert (row.attempts, row.releases, row.claims) == (1, 0, GIVE_BACK_LIMIT + 3)
    assert outcomes(row.id) == []


def test_a_completed_job(connection):
    (held,) = running(connection)
    write(connection, held.job_id, last_error="of an earlier attempt")
    settle_one(connection, held, End.COMPLETED, result='{"é": [1e2, "😀"]}')
    row = job(held.job_id)
    assert (row.status, row.result, row.last_error) == ("done", {"é": [100, "😀"]}, "")
    assert row.lease_until is None
    assert abs((row.finished_at - row.updated_at).total_seconds()) < 0.1


def test_the_attempt_row(connection):
    (held,) = running(connection)
    claimed = job(held.job_id)
    settle_one(connection, held, End.FAILED, error=ERROR, delay=1)
    (attempt,) = history(held.job_id)
    assert (attempt.number, attempt.token, attempt.worker) == (1, held.lease.token, WORKER)
    assert (attempt.outcome, attempt.error_class) == ("failed", "ValueError")
    assert (attempt.error_text, attempt.frames) == (ERROR.text, list(ERROR.frames))
    assert attempt.started_at == claimed.claimed_at
    assert attempt.finished_at >= claimed.claimed_at
    row = job(held.job_id)
    assert (row.last_error, row.fingerprint) == (ERROR.text, ERROR.fingerprint)


def test_a_reason_is_kept(connection):
    first, second = running(connection, 2)
    settle_one(connection, first, End.SKIPPED, reason="nothing due")
    settle_one(connection, second, End.SNOOZED, reason="bank holiday", delay=5)
    assert history(first.job_id)[0].error_text == "nothing due"
    assert job(first.job_id).last_error == ""
    assert job(second.job_id).last_error == "bank holiday"


def test_numbers_go_on(connection):
    made = enqueue("t")
    for _ in range(3):
        settle_one(connection, claim_one(connection), End.FAILED)
    assert [attempt.number for attempt in history(made.id)] == [1, 2, 3]
    assert len({attempt.token for attempt in history(made.id)}) == 3


@pytest.mark.parametrize("bury", [True, False])
def test_a_dead_job_waits_for_its_burial_if_it_has_a_hook(connection, bury):
    (held,) = running(connection, max_attempts=1)
    assert settle_one(connection, held, End.FAILED, bury=bury).status is Status.DEAD
    row = job(held.job_id)
    assert (row.lease_until is not None) is bury
    assert row.lease_token is None


def test_many_at_once(connection):
    jobs = running(connection, 30)
    ends = [End.COMPLETED, End.FAILED, End.SKIPPED]
    endings = [Ending(held.lease, Outcome(ends[n % 3], delay=n % 2)) for n, held in enumerate(jobs)]
    with count_statements(connection) as statements:
        settled = settle(connection, endings)
    assert [each.ending for each in settled] == endings
    assert {each.verdict for each in settled} == {Verdict.SETTLED}
    assert [job(held.job_id).status for held in jobs] == ["done", "ready", "done"] * 10
    assert [outcomes(held.job_id) for held in jobs] == [
        *([["completed"], ["failed"], ["skipped"]] * 10)
    ]
    assert statements.count("COMMIT") == 1


@pytest.mark.parametrize("count", [1, 50])
def test_statements(connection, count):
    jobs = running(connection, count)
    with count_statements(connection) as statements:
        settle(connection, [Ending(held.lease, Outcome(End.COMPLETED)) for held in jobs])
    assert len(statements) <= 6


def test_leases_of_several_claims_at_once(connection):
    jobs = [held for _ in range(3) for held in running(connection, 2)]
    settle(connection, [Ending(held.lease, Outcome(End.COMPLETED)) for held in jobs])
    for held in jobs:
        assert [attempt.token for attempt in history(held.job_id)] == [held.lease.token]


def test_nothing_and_the_same_twice(connection):
    assert settle(connection, []) == []
    (held,) = running(connection)
    ending = Ending(held.lease, Outcome(End.COMPLETED))
    settled = settle(connection, [ending, ending])
    assert [each.verdict for each in settled] == [Verdict.SETTLED] * 2
    assert outcomes(held.job_id) == ["completed"]


@pytest.mark.parametrize(
    "unstorable",
    [{"result": "{not json"}, {"error": ErrorSummary("E" * 300, "E")}],
    ids=["result", "error class"],
)
def test_what_the_server_refuses_becomes_a_failed_attempt(connection, db_kind, unstorable):
    """The offender alone: whoever was settled together with it is settled all the same."""
    if db_kind == "sqlite" and "error" in unstorable:
        pytest.skip("has no lengths")
    good, bad, also_good = running(connection, 3)
    settled = settle(
        connection,
        [
            Ending(good.lease, Outcome(End.COMPLETED)),
            Ending(bad.lease, Outcome(End.COMPLETED, **unstorable)),
            Ending(also_good.lease, Outcome(End.COMPLETED)),
        ],
    )
    assert [each.status for each in settled] == ["done", "ready", "done"]
    (attempt,) = history(bad.job_id)
    assert (attempt.outcome, attempt.error_class) == ("failed", "UnstorableOutcome")
    assert "not json" not in job(bad.job_id).last_error


def test_the_last_attempt_that_cannot_be_stored_is_the_end(connection):
    (held,) = running(connection, max_attempts=1)
    (settled,) = settle(connection, [Ending(held.lease, Outcome(End.COMPLETED, result="{"))])
    assert settled.status is Status.DEAD


def test_an_error_between_the_writes_leaves_nothing(connection):
    def explode() -> None:
        raise DatabaseError("out of disk")

    (held,) = running(connection)
    before = snapshot(connection)
    ending = Ending(held.lease, Outcome(End.COMPLETED))
    first = at_statement(connection, UPDATE, explode)
    again = at_statement(connection, UPDATE, explode)
    with first, again as reached, pytest.raises(DatabaseError):
        settle(connection, [ending])
    assert reached
    assert snapshot(connection) == before


def test_frames_are_json(connection):
    (held,) = running(connection)
    settle_one(connection, held, End.FAILED, error=ERROR)
    with connection.cursor() as cursor:
        cursor.execute("SELECT frames FROM leasequeue_jobattempt")
        (frames,) = cursor.fetchone()
    assert json.loads(frames) == list(ERROR.frames)
