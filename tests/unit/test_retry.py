"""Retry strategies: the figures of seed S2, and no overflow for any attempt."""

from __future__ import annotations

import math
import pickle
from datetime import timedelta
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from django_leasequeue.retry import MAX_DELAY, Exponential, Fixed, Linear, Strategy, as_seconds

EXTREME_ATTEMPTS = [1, 43, 70, 1100, 5000, 10**6]


@pytest.mark.parametrize(
    ("attempt", "seconds"),
    [(1, 5), (2, 10), (3, 20), (4, 40), (10, 2560), (11, 3600), (12, 3600)],
)
def test_exponential_is_base_times_two_to_the_attempt_before(attempt, seconds):
    assert Exponential(jitter=False).delay_for(attempt) == seconds


@pytest.mark.parametrize(
    ("attempt", "low", "high"), [(1, 30, 60), (2, 60, 120), (3, 120, 240), (7, 1800, 3600)]
)
def test_full_jitter_is_half_to_all(attempt, low, high):
    delays = [Exponential(base=60).delay_for(attempt) for _ in range(300)]
    assert low <= min(delays)
    assert max(delays) <= high
    assert max(delays) - min(delays) > (high - low) / 2


def test_a_number_as_jitter_comes_on_top_and_below_the_cap():
    """Seed S1: min(300, 2 ** attempt + 0…3 s)."""
    strategy = Exponential(base=2, cap=300, jitter=3)
    assert all(8 <= strategy.delay_for(3) <= 11 for _ in range(100))
    assert {strategy.delay_for(9) for _ in range(100)} == {300}


@given(
    attempt=st.integers(-5, 10_000),
    base=st.floats(0, 1e308),
    cap=st.floats(0, 1e308),
    jitter=st.one_of(st.booleans(), st.floats(0, 1e6)),
)
def test_exponential_is_always_between_zero_and_its_cap(attempt, base, cap, jitter):
    delay = Exponential(base, cap, jitter).delay_for(attempt)
    assert 0 <= delay <= cap


@pytest.mark.parametrize("attempt", EXTREME_ATTEMPTS)
def test_no_attempt_overflows(attempt):
    assert 1800 <= Exponential().delay_for(attempt) <= 3600 or attempt == 1
    assert Linear().delay_for(attempt) == min(30 * attempt, 600)
    assert Fixed().delay_for(attempt) == 60


@pytest.mark.parametrize(("attempt", "seconds"), [(0, 30), (1, 30), (2, 60), (20, 600), (21, 600)])
def test_linear(attempt, seconds):
    assert Linear().delay_for(attempt) == seconds


@pytest.mark.parametrize("attempt", [0, 1, 2, 5, 20])
def test_fixed(attempt):
    assert Fixed().delay_for(attempt) == 60
    assert Fixed(seconds=7).delay_for(attempt) == 7


@pytest.mark.parametrize("strategy", [Exponential(), Linear(), Fixed()])
def test_strategies_are_values(strategy):
    assert isinstance(strategy, Strategy)
    assert pickle.loads(pickle.dumps(strategy)) == strategy
    assert hash(strategy) == hash(type(strategy)())


@pytest.mark.parametrize(
    "make",
    [
        lambda: Exponential(base=-1),
        lambda: Exponential(cap=math.nan),
        lambda: Exponential(cap=math.inf),
        lambda: Exponential(jitter=-0.5),
        lambda: Linear(base="30"),
        lambda: Linear(cap=-1),
        lambda: Fixed(-1),
        lambda: Fixed(math.inf),
    ],
)
def test_a_strategy_that_makes_no_sense_is_refused(make):
    with pytest.raises((TypeError, ValueError)):
        make()


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        (0, 0.0),
        (-0.0, 0.0),
        (5, 5.0),
        (0.25, 0.25),
        (timedelta(minutes=2), 120.0),
        (timedelta.max, MAX_DELAY),
        (1e400, MAX_DELAY),
        pytest.param(10**400, MAX_DELAY, id="huge"),
        (MAX_DELAY + 1, MAX_DELAY),
    ],
)
def test_a_delay_in_seconds(value, seconds):
    assert as_seconds(value) == seconds
    assert isinstance(as_seconds(value), float)


@pytest.mark.parametrize(
    "value",
    [
        -5,
        -1e-9,
        pytest.param(-(10**400), id="huge"),
        -math.inf,
        math.nan,
        timedelta(seconds=-1),
        timedelta.min,
    ],
)
def test_a_delay_is_never_in_the_past(value):
    with pytest.raises(ValueError, match="at least 0"):
        as_seconds(value)


@pytest.mark.parametrize("value", [None, "5", True, False, Decimal(5), 5j, [5]])
def test_what_is_no_delay(value):
    with pytest.raises(ValueError, match="seconds or a timedelta"):
        as_seconds(value)
