"""Word of an end: what control says of a settlement, and how a desk waits for it."""

from __future__ import annotations

import threading
from datetime import UTC, datetime

import pytest

from django_leasequeue.core.lease import Claimed, Lease
from django_leasequeue.core.settle import Ending, Settled, Verdict
from django_leasequeue.outcomes import End, Outcome
from django_leasequeue.runtime.charges import Charge, Ended
from django_leasequeue.runtime.desk import Desk, Piece
from django_leasequeue.runtime.holds import Hold, Told
from django_leasequeue.runtime.messages import Ack, Assignment, Progress
from django_leasequeue.runtime.settlements import ack_of
from django_leasequeue.statuses import Status

LEASE = Lease(1, b"t" * 16)


def claimed(attempt: int = 1) -> Claimed:
    return Claimed(
        LEASE, 60, 1, "t", "q", "{}", attempt, 3, 0, "k", "", None, datetime.now(UTC), "{}", None,
        "w", None,
    )  # fmt: skip


def said(end, verdict, status=None, *, attempt=1, cancelled=False):
    job = claimed(attempt)
    hold = Hold(LEASE, 60, cancelled=cancelled)
    ended = Ended(Charge(Assignment(job, 0.0), hold, 0.0), Outcome(end), 0.0)
    return ack_of(ended, Settled(Ending(LEASE, ended.outcome), verdict, status))


@pytest.mark.parametrize("status", list(Status))
def test_what_was_settled_now(status):
    assert said(End.FAILED, Verdict.SETTLED, status) == Ack(LEASE, status)


@pytest.mark.parametrize(
    ("end", "attempt", "status"),
    [
        (End.COMPLETED, 1, Status.DONE),
        (End.SKIPPED, 3, Status.DONE),
        (End.REJECTED, 1, Status.DEAD),
        (End.FAILED, 2, Status.READY),
        (End.FAILED, 3, Status.DEAD),
        (End.TIMED_OUT, 3, Status.DEAD),
        (End.SNOOZED, 3, Status.READY),
        (End.RELEASED, 3, Status.READY),
    ],
)
def test_what_was_found_on_record(end, attempt, status):
    """An earlier COMMIT whose answer was lost: the rule says what it made of the job."""
    assert said(end, Verdict.SETTLED, attempt=attempt).status is status


def test_what_was_lost():
    assert said(End.COMPLETED, Verdict.LOST).status is None
    assert said(End.COMPLETED, Verdict.LOST, cancelled=True).status is Status.CANCELLED


def test_a_closed_desk_waits_for_what_is_owed():
    desk, taken = Desk(), []
    desk.await_ack(LEASE)
    desk.close()
    slots = [threading.Thread(target=lambda: taken.append(desk.take())) for _ in range(2)]
    for slot in slots:
        slot.start()
    desk.acknowledge([Ack(LEASE, Status.DONE)])
    for slot in slots:
        slot.join(10)
    assert {type(item) for item in taken} == {Ack, type(None)}
    assert len(taken) == 2


def test_ends_come_before_jobs():
    desk = Desk()
    desk.put([Assignment(claimed(), 0.0)], float("inf"))
    desk.acknowledge([Ack(LEASE, None)])
    assert [type(desk.take()) for _ in range(2)] == [Ack, Piece]


def test_progress_is_passed_on_once():
    desk = Desk()
    desk.put([Assignment(claimed(), 0.0)], float("inf"))
    piece = desk.take()
    assert isinstance(piece, Piece)
    assert desk.news() == []
    half = Told(0.5, "half")
    piece.hold.tell(half)
    assert desk.news() == [Progress(piece.hold.lease, half)]
    assert desk.news() == []
