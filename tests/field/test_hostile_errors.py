"""Errors whose text no database could store as it is: recorded all the same, cut and cleaned."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from django_leasequeue import Fixed, JobError, Reject, Retry, enqueue
from tests.core.arrange import history, job
from tests.field.workers import drain

LONGEST = 4000


def number_for_text() -> Any:
    return 5


class NoText(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")

    __repr__ = __str__


class WrongText(Exception):
    def __str__(self) -> Any:
        return number_for_text()

    __repr__ = __str__


class Exits(Exception):
    def __str__(self) -> str:
        raise SystemExit(1)


class HugeRepr:
    def __repr__(self) -> str:
        return "r" * 20_000_000


def in_a_cycle() -> Exception:
    first, second = ValueError("first"), KeyError("second")
    first.__cause__, second.__cause__ = second, first
    first.__context__, second.__context__ = second, first
    return first


def local_class() -> Exception:
    class Local(Exception):
        pass

    return Local("\x00")


def nameless() -> Exception:
    return type("\ud800\x00" + "n" * 70_000, (Exception,), {})("x")


ERRORS: dict[str, Callable[[], Exception]] = {
    "lone surrogate": lambda: Exception("\ud800"),
    "NUL": lambda: Exception("a\x00b"),
    "four-byte characters": lambda: Exception("😀" * 20_000),
    "17 MB": lambda: Exception("x" * 17_000_000),
    "str raises": NoText,
    "str returns no text": WrongText,
    "str exits": Exits,
    "huge repr": lambda: Exception(HugeRepr()),
    "group of 1000": lambda: ExceptionGroup("many", [ValueError(n) for n in range(1000)]),
    "cause cycle": in_a_cycle,
    "local class": local_class,
    "class without a good name": nameless,
    "vouched surrogate": lambda: JobError("\udfff\x00" + "😀" * 20_000),
    "vouched retry": lambda: Retry(0, "\ud800" + "x" * 17_000_000),
}


@pytest.fixture(params=["class", "message"])
def detail(request, settings) -> str:
    """How much of an error is stored."""
    settings.LEASEQUEUE = {**settings.LEASEQUEUE, "ERROR_DETAIL": request.param}
    return request.param


@pytest.fixture
def deep() -> Iterator[None]:
    """Allow a recursion of 10 000 frames."""
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(30_000)
    yield
    sys.setrecursionlimit(limit)


def storable(text: str) -> bool:
    return len(text) <= LONGEST and "\x00" not in text and text == text.encode().decode()


def test_each_is_recorded_retried_and_dead_as_usual(connection, declare, detail):
    """D2: two attempts each; the worker outlives them all."""
    ids = {}
    for name, make in ERRORS.items():
        declare(name, backoff=Fixed(0))(_raising(make))
        ids[name] = enqueue(name, max_attempts=2).id
    declare("after")(lambda: None)
    after = enqueue("after").id
    drain()
    for name, job_id in ids.items():
        dead = job(job_id)
        assert (dead.status, dead.attempts) == ("dead", 2), name
        attempts = history(job_id)
        assert [attempt.outcome for attempt in attempts] == ["failed", "failed"], name
        assert storable(dead.last_error) and dead.last_error == attempts[-1].error_text, name
        assert attempts[-1].error_class and attempts[-1].frames, name
    assert job(after).status == "done"
    cut = job(ids["four-byte characters" if detail == "message" else "vouched surrogate"])
    assert len(cut.last_error) == LONGEST and cut.last_error.endswith("😀😀")


def _raising(make):
    def handler():
        raise make()

    return handler


@pytest.mark.usefixtures("deep")
def test_a_traceback_of_10000_frames(connection, declare, detail):
    """D2: the innermost frames are kept."""

    def down(left):
        if left:
            down(left - 1)
        raise ValueError("bottom")

    declare("deep", backoff=Fixed(0))(lambda: down(10_000))
    job_id = enqueue("deep", max_attempts=1).id
    drain()
    (attempt,) = history(job_id)
    assert (job(job_id).status, attempt.outcome) == ("dead", "failed")
    assert 0 < len(attempt.frames) <= 40
    assert "down" in attempt.frames[-1]


@pytest.mark.parametrize("reason", ["\ud800\x00", "😀" * 20_000, "x" * 17_000_000])
def test_reasons_for_a_death(connection, declare, reason):
    """D2: the same for text that its author vouches for."""

    @declare("rejects")
    def handler():
        raise Reject(reason)

    job_id = enqueue("rejects").id
    drain()
    assert job(job_id).status == "dead"
    assert storable(job(job_id).last_error)
    assert [attempt.outcome for attempt in history(job_id)] == ["rejected"]
