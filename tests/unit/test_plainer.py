"""What is left of an outcome that a server refuses."""

from __future__ import annotations

import json

from django_leasequeue.core.plainer import plainer
from django_leasequeue.outcomes import End, ErrorSummary, Outcome


def test_less_and_less_of_it():
    error = ErrorSummary("Grün😀", "Grün😀: ü😀", ("ü😀.py:1 f",), "f" * 16)
    outcome = Outcome(End.REJECTED, error=error, reason="ü😀", bury=True, delay=3)
    rare, ascii_only, last = plainer(outcome)
    assert rare.error == ErrorSummary("Grün�", "Grün�: ü�", ("ü�.py:1 f",), "f" * 16)
    assert (rare.end, rare.reason, rare.bury, rare.delay) == (End.REJECTED, "ü�", True, 3)
    assert ascii_only.error
    assert (ascii_only.error.text, ascii_only.reason) == ("Gr?n?: ??", "??")
    assert (last.end, last.delay, last.bury) == (End.FAILED, 3, True)
    assert last.error
    assert last.error.error_class == "UnstorableOutcome"


def test_a_result_keeps_its_value():
    outcome = Outcome(End.COMPLETED, result='{"a":"ü😀"}')
    first, *_others = plainer(outcome)
    assert first.result
    assert first.result.isascii()
    assert json.loads(first.result) == {"a": "ü😀"}


def test_nothing_is_tried_that_is_no_plainer():
    (last,) = plainer(Outcome(End.COMPLETED, result='{"a": 1}'))
    assert last.end is End.FAILED
