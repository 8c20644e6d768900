"""progress(): the newest value of each running job, written under its lease, never in the way."""

from __future__ import annotations

import json

import pytest

from django_leasequeue.core.progress import save_progress
from django_leasequeue.core.recover import recover_batch
from django_leasequeue.core.settle import Ending, settle
from django_leasequeue.outcomes import End, Outcome
from django_leasequeue.runtime.clock import ticks
from django_leasequeue.runtime.holds import Holds, Told
from django_leasequeue.runtime.progress import ProgressBoard
from tests.core.arrange import claim_one, expire, job, running
from tests.faults import Fault, broken, codes_for, holding_job
from tests.statements import count_statements

pytestmark = [pytest.mark.usefixtures("connection"), pytest.mark.leaves_reserved]

HALF = '{"fraction": 0.5, "text": "é😀"}'


def test_what_it_writes(connection):
    first, second = running(connection, 2)
    before = job(first.job_id)
    with count_statements(connection) as statements:
        texts = {first.lease: HALF, second.lease: "null"}
        assert save_progress(connection, texts) == {first.lease, second.lease}
    assert len(statements) <= 5
    row = job(first.job_id)
    assert row.progress == json.loads(HALF)
    assert job(second.job_id).progress is None
    for name in ("status", "attempts", "claims", "lease_token", "lease_until", "available_at"):
        assert getattr(row, name) == getattr(before, name)


def test_one_alone(connection):
    (held,) = running(connection)
    save_progress(connection, {held.lease: HALF})
    assert job(held.job_id).progress == json.loads(HALF)
    assert save_progress(connection, {}) == set()


@pytest.mark.parametrize("way", ["expired", "taken by another", "ended"])
def test_a_lost_lease_writes_nothing(connection, way):
    (held,) = running(connection)
    if way == "ended":
        settle(connection, [Ending(held.lease, Outcome(End.COMPLETED))])
    else:
        expire(connection, held.job_id)
    if way == "taken by another":
        recover_batch(connection)
        claim_one(connection)
    before = job(held.job_id)
    save_progress(connection, {held.lease: HALF})
    assert job(held.job_id).progress is None
    assert job(held.job_id).updated_at == before.updated_at


@pytest.mark.only_on("mariadb", "mysql", "postgres")
def test_it_waits_for_no_lock(connection, session):
    first, second = running(connection, 2)
    texts = {first.lease: HALF, second.lease: HALF}
    with holding_job(session(), first.job_id):
        assert save_progress(connection, texts) == {second.lease}
    assert (job(first.job_id).progress, job(second.job_id).progress) == (None, json.loads(HALF))


@pytest.fixture
def board(connection):
    """A board of one running job: its hold, and what shows what has changed, some seconds on."""
    holds = Holds()
    (held,) = running(connection)
    hold = holds.add(held, ticks())
    return hold, ProgressBoard(holds.all)


def test_the_newest_value_only(connection, board):
    hold, shown = board
    for n in range(10):
        hold.told = Told(n / 10, f"page {n}")
    with count_statements(connection) as statements:
        shown.show(connection)
    assert len(statements) <= 5
    assert job(hold.lease.job_id).progress == {"fraction": 0.9, "text": "page 9"}


def test_every_two_seconds_at_most(connection, board, monkeypatch):
    hold, shown = board
    now = [ticks()]
    monkeypatch.setattr("django_leasequeue.runtime.notices.ticks", lambda: now[0])
    written = []
    for n in range(50):
        hold.told = Told(n / 50, "")
        with count_statements(connection) as statements:
            shown.show(connection)
        written.append(bool(statements))
        now[0] += 0.5
    assert written == [n % 4 == 0 for n in range(50)]


def test_what_has_not_changed_costs_nothing(connection, board):
    hold, shown = board
    hold.told = Told(0.5, "")
    with count_statements(connection) as statements:
        shown._due = 0.0
        shown.show(connection)
    assert statements
    shown._due = 0.0
    with count_statements(connection) as statements:
        shown.show(connection)
    assert not statements


def test_a_refusal_fails_nothing(connection, board, caplog):
    hold, shown = board
    hold.told = Told(0.5, "")
    code = codes_for(connection)[0]
    fault = Fault(code, match=lambda sql: "UPDATE" in sql, times=100)
    with broken(connection, fault):
        shown.show(connection)
    assert [record.event for record in caplog.records] == ["progress_refused"]
    assert job(hold.lease.job_id).progress is None


@pytest.mark.parametrize(
    "told",
    [
        {"fraction": 1.01},
        {"fraction": -0.1},
        {"fraction": float("nan")},
        {"fraction": True},
        {"fraction": "0.5"},
        {"text": "x" * 201},
        {"text": "\0"},
        {"text": "\ud800"},
        {"text": None},
    ],
    ids=repr,
)
def test_what_is_no_progress(connection, declare, attempt, told):
    @declare("arranged", takes_context=True)
    def handler(context, n):
        context.progress(**told)

    (held,) = running(connection)
    error = attempt(held).error
    assert error.error_class == "JobError"
    assert error.text.startswith("JobError: progress: the ")


@pytest.mark.parametrize(
    "told", [(), (0,), (1,), (0.25, "x" * 200), (None, "half-way 😀")], ids=repr
)
def test_what_is_progress(connection, declare, attempt, told):
    @declare("arranged", takes_context=True)
    def handler(context, n):
        context.progress(*told)

    (held,) = running(connection)
    assert attempt(held).end is End.COMPLETED
