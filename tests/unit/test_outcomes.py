"""What each end of an attempt spends, and what the job becomes (design, section 5)."""

from __future__ import annotations

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from django_leasequeue.outcomes import (
    GIVE_BACK_LIMIT,
    SPENDING,
    End,
    ErrorSummary,
    Outcome,
    transition,
)
from django_leasequeue.statuses import Status
from tests.unit.budgets import budget, budgets

#: The design's table, written out: end, started → attempt spent, crash, attempt row.
TABLE = {
    (End.COMPLETED, True): (True, 0, True),
    (End.SKIPPED, True): (True, 0, True),
    (End.FAILED, True): (True, 0, True),
    (End.TIMED_OUT, True): (True, 0, True),
    (End.REJECTED, True): (True, 0, True),
    (End.CANCELLED, True): (True, 0, True),
    (End.CRASHED, True): (True, 1, True),
    (End.EXPIRED, True): (True, 1, True),
    (End.SNOOZED, True): (False, 0, True),
    (End.RELEASED, True): (False, 0, True),
    (End.RELEASED, False): (False, 0, False),
    (End.PARKED, False): (False, 0, False),
}
FINAL = {
    End.COMPLETED: Status.DONE,
    End.SKIPPED: Status.DONE,
    End.REJECTED: Status.DEAD,
    End.CANCELLED: Status.CANCELLED,
    End.PARKED: Status.PARKED,
}
outcomes = st.sampled_from(sorted(TABLE)).map(lambda row: Outcome(row[0], started=row[1]))
retried = st.sampled_from([End.FAILED, End.TIMED_OUT, End.CRASHED, End.EXPIRED]).map(Outcome)


def test_the_table_has_every_end():
    assert {end for end, _started in TABLE} == set(End) == set(SPENDING)


@pytest.mark.parametrize(("end", "started"), TABLE)
def test_what_an_end_spends(end, started):
    spent, crashes, recorded = TABLE[end, started]
    change = transition(Outcome(end, started=started), budget(attempts=2))
    assert change.attempts == (0 if spent else -1)
    assert change.crashes == crashes
    assert Outcome(end, started=started).recorded is recorded


@given(outcome=outcomes, before=budgets)
def test_attempts_never_fall_below_zero_and_never_rise(outcome, before):
    change = transition(outcome, before)
    assert change.attempts in (0, -1)
    assert before.attempts + change.attempts >= 0


@given(outcome=outcomes, before=budgets)
def test_ends_that_decide_alone(outcome, before):
    if outcome.end in FINAL:
        assert transition(outcome, before).status is FINAL[outcome.end]


@given(outcome=retried, before=budgets)
def test_dead_at_whichever_budget_ends_first(outcome, before):
    crashed = outcome.end in (End.CRASHED, End.EXPIRED)
    attempts_gone = before.attempts >= before.max_attempts
    crashes_gone = crashed and before.crashes + 1 >= before.max_crashes
    expected = Status.DEAD if attempts_gone or crashes_gone else Status.READY
    assert transition(outcome, before).status is expected


@given(before=budgets)
def test_a_release_is_given_back_up_to_the_limit(before):
    change = transition(Outcome(End.RELEASED), before)
    if before.releases < GIVE_BACK_LIMIT:
        assert change.status is Status.READY
        assert change.releases == before.releases + 1
        assert change.attempts == -min(1, before.attempts)
    else:
        assert change.attempts == 0
        assert change.releases == 0


@given(before=budgets)
def test_a_release_before_the_start_is_free_however_often(before):
    """A worker that claims ahead gives back what it cannot start soon, and may do so for days."""
    change = transition(Outcome(End.RELEASED, started=False), before)
    assert (change.status, change.crashes) == (Status.READY, 0)
    assert change.attempts == -min(1, before.attempts)
    assert change.releases == before.releases


@given(before=budgets, started=st.booleans(), delay=st.floats(0, 1e6))
def test_a_release_keeps_the_jobs_turn(before, started, delay):
    outcome = Outcome(End.RELEASED, started=started, delay=delay)
    assert transition(outcome, before).delay is None


def test_endless_deploys_end_a_job():
    now = budget(attempts=0, max_attempts=3)
    claims = 0
    status = Status.READY
    while status is Status.READY:
        claims += 1
        change = transition(Outcome(End.RELEASED), now._replace(attempts=now.attempts + 1))
        now = now._replace(attempts=now.attempts + 1 + change.attempts, releases=change.releases)
        status = change.status
    assert status is Status.DEAD
    assert claims == 3 * (GIVE_BACK_LIMIT + 1)


@given(outcome=outcomes, before=budgets)
def test_only_releases_count_as_releases(outcome, before):
    if outcome.end is not End.RELEASED:
        assert transition(outcome, before).releases == 0


@given(outcome=outcomes, before=budgets, delay=st.floats(0, 1e6))
def test_a_delay_is_kept_for_jobs_that_run_again_only(outcome, before, delay):
    delayed = Outcome(outcome.end, started=outcome.started, delay=delay)
    change = transition(delayed, before)
    if outcome.end is not End.RELEASED:
        assert change.delay == (delay if change.status is Status.READY else 0.0)


def test_a_snooze_runs_again_even_on_the_last_attempt():
    change = transition(Outcome(End.SNOOZED), budget(attempts=5, max_attempts=5))
    assert (change.status, change.attempts) == (Status.READY, -1)


@pytest.mark.parametrize(("maximum", "runs"), [(1, 1), (3, 3)])
def test_max_attempts_is_how_often_a_failing_job_runs(maximum, runs):
    statuses = [
        transition(Outcome(End.FAILED), budget(attempts=run, max_attempts=maximum)).status
        for run in range(1, runs + 1)
    ]
    assert statuses == [Status.READY] * (runs - 1) + [Status.DEAD]


def test_an_outcome_crosses_a_pipe():
    outcome = Outcome(End.FAILED, delay=2.5, error=ErrorSummary("E", "E: x", ("f:1 g",), "ab"))
    assert pickle.loads(pickle.dumps(outcome)) == outcome
    assert hash(outcome) == hash(pickle.loads(pickle.dumps(outcome)))
    assert outcome.message == "E: x"
    assert Outcome(End.SKIPPED, reason="none due").message == "none due"
