"""JobResult: what a handler may return (seed S2)."""

from __future__ import annotations

from django_leasequeue import JobResult


def test_success_carries_data():
    result = JobResult.success({"sent": 3})
    assert (result.data, result.is_success, result.is_skipped) == ({"sent": 3}, True, False)
    assert JobResult.success().data == {}


def test_skipped_is_a_success_with_a_reason():
    result = JobResult.skipped("nothing to send")
    assert (result.is_success, result.is_skipped) == (True, True)
    assert result.skip_reason == "nothing to send"


def test_skipped_without_words_is_skipped_all_the_same():
    assert JobResult.skipped("").is_skipped
