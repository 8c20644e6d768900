"""C15: a job that goes back to its queue is one UPDATE, in one transaction with its attempt row."""

from __future__ import annotations

import re

import pytest

from django_leasequeue.core.dialect import dialect_for
from django_leasequeue.core.recover import recover_batch
from django_leasequeue.core.settle import Ending, settle
from django_leasequeue.outcomes import End, ErrorSummary, Outcome
from tests.core.arrange import expire, job, outcomes, running
from tests.statements import count_statements

BACK = {
    "retried": Outcome(End.FAILED, error=ErrorSummary("E", "E"), delay=1),
    "timed out": Outcome(End.TIMED_OUT, error=ErrorSummary("E", "E"), delay=1),
    "crashed": Outcome(End.CRASHED, error=ErrorSummary("E", "E"), delay=1),
    "snoozed": Outcome(End.SNOOZED, delay=1),
    "released": Outcome(End.RELEASED),
}


def writes(statements):
    """Return the verbs of the writing statements; fails if one is outside the one transaction."""
    plain = [re.sub(r"/\*.*?\*/\s*", "", sql) for sql in statements]
    begin = next(n for n, sql in enumerate(plain) if sql.startswith(("BEGIN", "START")))
    commit = plain.index("COMMIT")
    found = {n: sql for n, sql in enumerate(plain) if not sql.startswith(("SELECT", "BEGIN"))}
    kept = {n: sql for n, sql in found.items() if n not in (begin, commit)}
    assert all(begin < n < commit for n, sql in kept.items() if not sql.startswith("SET"))
    return [" ".join(sql.split()[:3]) for sql in kept.values() if not sql.startswith("SET")]


INSERT, UPDATE = "INSERT INTO leasequeue_jobattempt", "UPDATE leasequeue_job"


@pytest.mark.parametrize("how", BACK)
def test_back_by_its_worker(connection, how):
    held = running(connection, 3)
    with count_statements(connection) as statements:
        settle(connection, [Ending(one.lease, BACK[how]) for one in held])
    if dialect_for(connection).writes_within:
        assert writes(statements) == ["WITH ended AS"]
    else:
        first, second = writes(statements)
        assert first == INSERT
        assert second.startswith(UPDATE)
    for one in held:
        assert job(one.job_id).status == "ready"
        assert outcomes(one.job_id) == [BACK[how].end.value]


def test_back_by_recovery(connection):
    held = running(connection, 3)
    expire(connection, *(one.job_id for one in held))
    with count_statements(connection) as statements:
        assert len(recover_batch(connection)) == len(held)
    first, second = writes(statements)
    assert first == INSERT
    assert second.startswith(UPDATE)
    assert {job(one.job_id).status for one in held} == {"ready"}
