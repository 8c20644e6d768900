"""Polling: an idle worker looks often after its last job, and seldom after a silence."""

from __future__ import annotations

import itertools
from types import SimpleNamespace

import pytest

from django_leasequeue.conf import Conf
from django_leasequeue.runtime import poll
from django_leasequeue.runtime.poll import Poll


@pytest.fixture
def now(monkeypatch):
    """Set the time by `now[0]`; what is drawn is the most there is."""
    moment = [100.0]
    monkeypatch.setattr(poll, "ticks", lambda: moment[0])
    monkeypatch.setattr(poll, "random", SimpleNamespace(uniform=lambda low, high: high))
    return moment


def by_default() -> Poll:
    return Poll(Conf().POLL_MIN, Conf().POLL_MAX)


def waited(polling: Poll, count: int) -> list[float]:
    return [polling.wait_seconds() for _ in range(count)]


def test_from_50_ms_to_a_second(now):
    """Each wait is half as long again as the one before."""
    waits = waited(by_default(), 20)
    assert (waits[0], waits[-1]) == (0.05, 1.0)
    growth = [later / earlier for earlier, later in itertools.pairwise(waits)]
    assert growth[:7] == pytest.approx([1.5] * 7)
    assert waits[8:] == [1.0] * 12


def test_a_job_brings_it_back_to_the_shortest(now):
    polling = by_default()
    waited(polling, 20)
    polling.active()
    assert polling.wait_seconds() == 0.05


def test_it_stays_attentive_until_a_second_after_the_last_job(now):
    polling = by_default()
    polling.active()
    began = now[0]
    while now[0] < began + 1:
        seconds = polling.wait_seconds()
        assert 0.05 <= seconds < 0.1
        now[0] += seconds
    now[0] = began + 1.3
    assert waited(polling, 20)[-1] == 1.0


@pytest.mark.parametrize(("shortest", "longest"), [(0.3, 0.3), (0.01, 0.012), (60, 3600)])
@pytest.mark.parametrize("attentive", [True, False])
def test_it_is_never_above_its_longest(now, shortest, longest, attentive):
    polling = Poll(shortest, longest)
    if attentive:
        polling.active()
    assert all(shortest <= seconds <= longest for seconds in waited(polling, 50))


def test_jitter_keeps_workers_out_of_step():
    waits = {Poll(1.0, 1.0).wait_seconds() for _ in range(100)}
    assert len(waits) > 90
    assert all(0.8 <= seconds <= 1.0 for seconds in waits)
