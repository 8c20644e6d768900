"""What is kept of any exception, however broken: no values, and always storable (case D2)."""

from __future__ import annotations

import json
import sys

import pytest

from django_leasequeue.codec import summarize
from django_leasequeue.exceptions import JobError, LeaseLost, Reject, RejectedJob, Retry
from django_leasequeue.outcomes import ErrorSummary

SECRET = "hunter2"


class OrderError(JobError):
    pass


class MuteError(Exception):
    def __str__(self):
        raise RuntimeError(SECRET)

    __repr__ = __str__


class NumberError(Exception):
    def __str__(self):
        return 5  # noqa: PLE0307  (on purpose)


class ExitingError(Exception):
    def __str__(self):
        raise SystemExit(SECRET)


def made_inside() -> Exception:
    class InnerError(Exception):
        pass

    return InnerError(SECRET)


def cycle() -> Exception:
    first, second = ValueError(SECRET), KeyError(SECRET)
    first.__cause__, second.__cause__ = second, first
    return first


def surrogate_name() -> Exception:
    return type("BadError", (Exception,), {"__qualname__": "Bad\ud800\0Error"})(SECRET)


BROKEN = [
    Exception("\ud800"),
    Exception("a\0b"),
    Exception("😀" * 20_000),
    Exception("x" * 5_000_000),
    MuteError(),
    NumberError(),
    ExitingError(),
    ExceptionGroup("many", [ValueError(number) for number in range(1_000)]),
    cycle(),
    made_inside(),
    surrogate_name(),
    type("L" * 5_000, (Exception,), {})(),
    KeyboardInterrupt(),
    SystemExit(3),
]


def raised(error: BaseException) -> BaseException:
    try:
        raise error  # noqa: TRY301  (it needs a traceback)
    except BaseException as caught:  # noqa: BLE001  (what summarize is given)
        return caught


def deep(levels: int) -> None:
    if levels:
        return deep(levels - 1)
    raise ValueError(SECRET)


def assert_storable(summary: ErrorSummary) -> None:
    assert len(summary.error_class) <= 255
    assert len(summary.text) <= 4000
    assert len(summary.fingerprint) == 16
    for text in (summary.error_class, summary.text, json.dumps(summary.frames)):
        assert "\0" not in text
        text.encode()
    assert all(frame == frame.encode().decode() for frame in summary.frames)


@pytest.mark.parametrize(
    "error", BROKEN, ids=lambda error: type(error).__name__[:20].encode("ascii", "replace")
)
@pytest.mark.parametrize("with_message", [False, True])
def test_no_exception_breaks_it(error, with_message):
    summary = summarize(raised(error), job_type="t", with_message=with_message)
    assert_storable(summary)
    name = summary.error_class.removeprefix(f"{type(error).__module__}.")
    assert summary.text.startswith(name)
    assert SECRET not in summary.text or with_message


def test_ten_thousand_frames():
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(20_000)
    try:
        with pytest.raises(ValueError, match=SECRET) as caught:
            deep(10_000)
        summary = summarize(caught.value)
    finally:
        sys.setrecursionlimit(limit)
    assert_storable(summary)
    assert len(summary.frames) <= 41
    assert summary.frames[-1].endswith(" deep")


@pytest.mark.parametrize(
    "error",
    [
        OrderError("no order 7"),
        RejectedJob("no order 7"),
        Reject("no order 7"),
        Retry(1, "no order 7"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_the_message_of_those_who_vouch_for_it(error):
    assert summarize(error).text == f"{type(error).__name__}: no order 7"


@pytest.mark.parametrize("error", [ValueError(SECRET), LeaseLost(SECRET), OSError(2, SECRET)])
def test_no_message_of_anybody_else(error):
    summary = summarize(raised(error))
    assert summary.text == summary.error_class == type(error).__name__
    assert SECRET in summarize(error, with_message=True).text


def test_frames_name_places_not_values():
    password = SECRET
    summary = summarize(raised(ValueError(password)))
    assert summary.frames == tuple(frame for frame in summary.frames if SECRET not in frame)
    assert summary.frames[-1].split(" ")[1] == "raised"
    assert __file__ in summary.frames[-1]


def test_a_qualified_name_tells_where_a_class_was_made():
    """A TaskError has to find it; Python's and the queue's own go by their bare names."""
    path = f"{__name__}.made_inside.<locals>.InnerError"
    assert summarize(made_inside()).error_class == path
    assert summarize(made_inside()).text == "made_inside.<locals>.InnerError"


def test_like_errors_share_a_fingerprint():
    one, other = (
        summarize(raised(ValueError(1)), job_type="t"),
        summarize(raised(ValueError(2)), job_type="t"),
    )
    assert one.fingerprint == other.fingerprint
    different = [
        summarize(raised(KeyError(1)), job_type="t"),
        summarize(raised(ValueError(1)), job_type="u"),
        summarize(made_inside(), job_type="t"),
    ]
    assert len({one.fingerprint, *(summary.fingerprint for summary in different)}) == 4
