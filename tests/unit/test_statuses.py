"""The one table of legal transitions."""

from __future__ import annotations

import pytest

from django_leasequeue.outcomes import End, Outcome, transition
from django_leasequeue.statuses import FINAL, TRANSITIONS, Status, sources_of
from tests.unit.budgets import budget


def test_every_status_has_its_row():
    assert set(TRANSITIONS) == set(Status)


def test_the_words_are_those_of_the_contract():
    words = ["ready", "reserved", "done", "dead", "cancelled", "parked"]
    assert [status.value for status in Status] == words
    assert str(Status.DONE) == "done"


def test_done_is_done():
    assert TRANSITIONS[Status.DONE] == frozenset()


def test_nothing_becomes_what_it_is():
    assert all(status not in targets for status, targets in TRANSITIONS.items())


def test_only_a_ready_job_can_be_claimed():
    assert sources_of(Status.RESERVED) == (Status.READY,)


def test_only_a_running_job_can_be_done():
    assert sources_of(Status.DONE) == (Status.RESERVED,)


def test_what_an_operator_may_cancel():
    assert set(sources_of(Status.CANCELLED)) == set(Status) - {Status.DONE, Status.CANCELLED}


def test_final_statuses():
    assert {Status.DONE, Status.DEAD, Status.CANCELLED} == FINAL


@pytest.mark.parametrize("end", End)
@pytest.mark.parametrize("attempts", [1, 5])
def test_every_end_of_a_running_job_is_a_legal_transition(end, attempts):
    change = transition(Outcome(end), budget(attempts=attempts))
    assert change.status in TRANSITIONS[Status.RESERVED]
