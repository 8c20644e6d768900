"""S1, S2, S3: how often a job is tried and how long it waits, by whom it is decided."""

from __future__ import annotations

import pytest

from django_leasequeue import Exponential, Fixed, Linear, enqueue
from tests.core.arrange import history, job

pytestmark = pytest.mark.usefixtures("connection")


@pytest.fixture
def delays(declare, finish, due_again):
    """Let a job fail until it is dead; return the delay after each attempt but the last."""

    def fail(**policy):
        @declare("failing", **policy)
        def failing():
            raise OSError

        made = enqueue("failing")
        found = []
        while True:
            outcome, row = finish()
            if row.status == "dead":
                return found
            found.append(outcome.delay)
            wait = (row.available_at - history(made.id)[-1].finished_at).total_seconds()
            assert abs(wait - outcome.delay) < 2
            due_again(made.id)

    return fail


def lease_queue(settings, **values):
    settings.LEASEQUEUE = {**settings.LEASEQUEUE, **values}


def test_five_attempts_by_default(delays):
    """S1: max_attempts DEFAULT 5, and then dead."""
    assert len(delays(backoff=Fixed(1))) == 4


def test_an_undeclared_job_waits_as_the_setting_says(delays, settings):
    """S2: the strategy of the loop, for jobs that declare none."""
    lease_queue(settings, BACKOFF=Linear(base=10, cap=25))
    assert delays() == [10, 20, 25, 25]


def test_the_default_of_the_setting(delays):
    """S2: ExponentialRetryStrategy(5, 3600, jitter)."""
    found = delays()
    assert all(low <= delay <= 2 * low for delay, low in zip(found, (2.5, 5, 10, 20), strict=True))


class Squares:
    """An algorithm of the project's own, with S2's one method."""

    def delay_for(self, attempt):
        return attempt * attempt


def test_an_algorithm_of_one_s_own_for_all_jobs(delays, settings):
    """S2: implement the strategy's contract and give it to the loop."""
    lease_queue(settings, BACKOFF=Squares())
    assert delays() == [1, 4, 9, 16]


def test_a_declared_strategy_wins_over_the_setting(delays, settings):
    lease_queue(settings, BACKOFF=Linear(base=10), MAX_ATTEMPTS=9)
    assert delays(backoff=Fixed(7), max_attempts=3) == [7, 7]


def test_thirty_seconds_doubling_up_to_an_hour(delays):
    """S3's rule, as a declared backoff."""
    found = delays(backoff=Exponential(30, 3600, jitter=False), max_attempts=10)
    assert found == [30, 60, 120, 240, 480, 960, 1920, 3600, 3600]


def test_bounded_jittered_doubling(delays):
    """S1's rule: min(300, 2 ** min(attempt, 8) + 0…3 s)."""
    found = delays(backoff=Exponential(2, 300, jitter=3), max_attempts=11)
    lows = [2, 4, 8, 16, 32, 64, 128, 256, 300, 300]
    assert all(low <= delay <= min(300, low + 3) for delay, low in zip(found, lows, strict=True))


def test_an_exception_is_a_retry_while_attempts_remain(declare, finish, due_again):
    """S2: throw to fail the attempt; S1's transient fixture: done on attempt three."""
    seen = []

    @declare("t", takes_context=True, max_attempts=4)
    def handler(context):
        seen.append(context.attempt)
        if context.attempt <= 2:
            raise OSError
        return "done"

    made = enqueue("t")
    for status in ("ready", "ready", "done"):
        assert finish()[1].status == status
        due_again(made.id)
    assert seen == [1, 2, 3]
    assert [one.outcome for one in history(made.id)] == ["failed", "failed", "completed"]
    assert (job(made.id).attempts, job(made.id).result) == (3, "done")
