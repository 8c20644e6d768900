"""Plainer: what is left of an outcome that the server refuses, for its end to be on record.

A database, a column or a connection of another character set than utf8mb4 has no place for some
texts: they lose those characters, the outcome stays what it is.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import replace

from django_leasequeue.outcomes import End, ErrorSummary, Outcome

__all__ = ["plainer"]

#: What utf8mb3 has no place for.
_RARE = re.compile("[\U00010000-\U0010ffff]")


def plainer(outcome: Outcome) -> Iterator[Outcome]:
    """Yield what may be stored instead, less and less of it; the last is a failed attempt."""
    for simplify in (_without_rare, _ascii):
        simpler = _simplified(outcome, simplify)
        if simpler != outcome:
            yield simpler
    yield _unstorable(outcome)


def _without_rare(text: str) -> str:
    return _RARE.sub("\N{REPLACEMENT CHARACTER}", text)


def _ascii(text: str) -> str:
    return text.encode("ascii", "replace").decode("ascii")


def _simplified(outcome: Outcome, simplify: Callable[[str], str]) -> Outcome:
    error, result = outcome.error, outcome.result
    if error is not None:
        error = replace(
            error,
            error_class=simplify(error.error_class),
            text=simplify(error.text),
            frames=tuple(map(simplify, error.frames)),
        )
    if result is not None and not result.isascii():
        result = json.dumps(json.loads(result))  # the same value, in escapes
    return replace(outcome, error=error, reason=simplify(outcome.reason), result=result)


def _unstorable(outcome: Outcome) -> Outcome:
    """Return the failed attempt that stands for an outcome which the server refuses."""
    text = "UnstorableOutcome: the database refused how this attempt ended"
    return Outcome(
        End.FAILED,
        delay=outcome.delay,
        error=ErrorSummary("UnstorableOutcome", text),
        bury=outcome.bury,
    )
