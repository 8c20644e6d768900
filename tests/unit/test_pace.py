"""The pace of handlers: what a crew learns of it, and how many jobs it lets wait."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from django_leasequeue.outcomes import End, Outcome
from django_leasequeue.runtime.charges import Charge, Ended
from django_leasequeue.runtime.holds import Hold
from django_leasequeue.runtime.messages import Assignment
from django_leasequeue.runtime.pace import Pace
from tests.unit.test_acks import claimed


def ended(seconds: float, *, started: bool = True, last: Any = None, payload: str = "{}") -> Ended:
    job = replace(claimed(), payload=payload)
    charge = Charge(Assignment(job, 0.0, last=last), Hold(job.lease, 60.0), 0.0)
    charge.started_at = 1.0 if started else None
    return Ended(charge, Outcome(End.COMPLETED), seconds)


def paced(*seconds: float) -> Pace:
    pace = Pace()
    for each in seconds:
        pace.learn(ended(each))
    return pace


def test_nothing_waits_while_nothing_is_known():
    assert Pace().within(1.0, 100) == 0


@pytest.mark.parametrize(
    ("seconds", "waiting"), [(0.0, 100), (0.001, 100), (0.01, 20), (0.1, 2), (0.19, 1), (0.3, 0)]
)
def test_as_many_wait_as_run_in_the_time(seconds, waiting):
    assert paced(seconds).within(0.2, 100) == waiting


def test_longer_handlers_are_believed_sooner_than_shorter_ones():
    slower, faster = paced(*[0.01] * 20, 1.0), paced(*[1.0] * 20, 0.01)
    assert slower.within(0.2, 100) == 0
    assert faster.mean > 0.8


def test_large_payloads_do_not_wait_by_the_hundred():
    pace = Pace()
    pace.learn(ended(0.0005, payload="x" * 2**20))
    assert pace.within(0.2, 400) == 15


def test_what_did_not_start_and_burials_teach_nothing():
    pace = paced(0.01)
    pace.learn(ended(9.0, started=False))
    pace.learn(ended(9.0, last=("crashed", "")))
    assert pace.mean == pytest.approx(0.01)
