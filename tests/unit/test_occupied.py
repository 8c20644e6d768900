"""Whether a crew has work for a moment more, so that nobody waits for control meanwhile."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from django_leasequeue.runtime.children import Children, Rules
from django_leasequeue.runtime.pace import Pace


def crew(*charges: int, threads: int = 1, mean: float = 0.001, ready: bool = True) -> Children:
    found = Children(None, Rules(processes=len(charges), threads=threads), lambda sessions: None)
    found._children = [
        SimpleNamespace(ready=ready, retiring=False, charges=range(count)) for count in charges
    ]
    found._pace = Pace(mean=mean, size=100)
    return found


@pytest.mark.parametrize(
    ("charges", "threads", "mean", "occupied"),
    [
        ([100], 1, 0.001, True),
        ([8], 1, 0.001, True),
        ([7], 1, 0.001, False),  # one runs, five would end within the time
        ([100, 7], 1, 0.001, False),
        ([100, 100], 1, 0.001, True),
        ([100], 8, 0.001, True),
        ([49], 8, 0.001, False),
        ([2], 1, 3600.0, False),  # a long one: it may end at any moment
        ([100], 1, 0.0, True),
    ],
)
def test_with_work_for_five_milliseconds(charges, threads, mean, occupied):
    assert crew(*charges, threads=threads, mean=mean).occupied(0.005) is occupied


def test_nobody_is_not_occupied():
    assert crew().occupied(0.005) is False
    assert crew(100, ready=False).occupied(0.005) is False


def test_not_while_children_fail():
    failing = crew(100)
    failing._failures = 1
    assert failing.occupied(0.005) is False
