"""An outcome is tried for as long as a lease is, from its own end on, then left to its lease."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from django_leasequeue.core.lease import Lease
from django_leasequeue.core.settle import Settled, Verdict
from django_leasequeue.outcomes import End, Outcome
from django_leasequeue.runtime import settlements
from django_leasequeue.runtime.charges import Ended
from django_leasequeue.runtime.settlements import Settlements


def ended(number: int) -> Ended:
    charge = SimpleNamespace(
        job=SimpleNamespace(lease=Lease(number, b"t" * 16), job_id=number),
        hold=SimpleNamespace(seconds=10.0, lost=False),
        ended_at=0.0,
    )
    return Ended(charge, Outcome(End.COMPLETED), 0.0)


def test_only_what_has_waited_for_a_lease_is_given_up(monkeypatch):
    now = [100.0]
    away = [True]

    def settle(connection, endings):
        if away[0]:
            raise ConnectionError
        return [Settled(ending, Verdict.SETTLED) for ending in endings]

    monkeypatch.setattr(settlements, "ticks", lambda: now[0])
    monkeypatch.setattr(settlements, "settle", settle)
    waiting = Settlements()
    first, second = ended(1), ended(2)
    waiting.add(first)
    with pytest.raises(ConnectionError):
        waiting.flush(None)
    now[0] = 112.0
    waiting.add(second)  # ended late in the outage, under a lease that was renewed all the time
    with pytest.raises(ConnectionError):
        waiting.flush(None)
    assert len(waiting) == 1
    away[0] = False
    verdicts = {done.charge.job.job_id: how.verdict for done, how in waiting.flush(None)}
    assert verdicts == {1: Verdict.LOST, 2: Verdict.SETTLED}


def test_ends_wait_for_one_another_for_a_moment(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(settlements, "ticks", lambda: now[0])
    waiting = Settlements()
    assert waiting.waits_for_others() == 0
    waiting.add(ended(1))
    now[0] = 100.003
    waiting.add(ended(2))
    assert waiting.waits_for_others() == pytest.approx(0.002)
    now[0] = 100.006
    assert waiting.waits_for_others() == 0


def test_as_many_as_are_settled_together_wait_for_no_more(monkeypatch):
    monkeypatch.setattr(settlements, "ticks", lambda: 100.0)
    waiting = Settlements()
    for number in range(400):
        assert bool(waiting.waits_for_others()) is bool(number)
        waiting.add(ended(number))
    assert waiting.waits_for_others() == 0


def test_nothing_waits_for_others_while_the_database_is_away(monkeypatch):
    def away(connection, endings):
        raise ConnectionError

    monkeypatch.setattr(settlements, "ticks", lambda: 100.0)
    monkeypatch.setattr(settlements, "settle", away)
    waiting = Settlements()
    waiting.add(ended(1))
    with pytest.raises(ConnectionError):
        waiting.flush(None)
    assert waiting.waits_for_others() == 0
