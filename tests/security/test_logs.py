"""The worker's log: one JSON object a line, whatever is in a record, and whatever writing costs."""

from __future__ import annotations

import errno
import io
import json
import logging
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from django_leasequeue.events import log_event
from django_leasequeue.logs import JsonLines, TextLines, WorkerLogs
from tests.waiting import wait_until

PROJECT = logging.getLogger("a_project.reports")
VALUE = "Zq7-marker-of-a-value"
FORMATS = {"json": JsonLines(), "text": TextLines()}


class Unspeakable:
    """Fits in no line."""

    def __str__(self) -> str:
        raise ValueError(VALUE)

    __repr__ = __str__


@contextmanager
def written(format_: str = "json") -> Iterator[io.StringIO]:
    """Log as in a process whose project has configured nothing."""
    root, before, stderr = logging.getLogger(), sys.stderr, io.StringIO()
    handlers, root.handlers = root.handlers, []
    sys.stderr = stderr
    try:
        with WorkerLogs(format_):
            yield stderr
    finally:
        root.handlers, sys.stderr = handlers, before


def record(**fields: Any) -> logging.LogRecord:
    return logging.makeLogRecord({"name": "n", "msg": "m", **fields})


@pytest.mark.parametrize("shape", FORMATS)
@pytest.mark.parametrize("field", ["message", "event's field", "field's name", "event", "logger"])
def test_a_text_stays_in_its_line(hostile: str, shape: str, field: str) -> None:
    made = {
        "message": record(msg=hostile),
        "event's field": record(event="job_failed", fields={"error": hostile}),
        "field's name": record(event="job_failed", fields={hostile: 1}),
        "event": record(event=hostile, fields={}),
        "logger": record(name=hostile),
    }[field]
    line = FORMATS[shape].format(made)
    assert line.isprintable()
    assert len(line.splitlines()) == 1
    if shape == "json":
        assert hostile in [*map(str, json.loads(line).values()), *json.loads(line)]


WRONG: dict[str, Any] = {
    "too many arguments": lambda: PROJECT.warning("of %s", 1, VALUE),
    "the wrong kind": lambda: PROJECT.warning("%d", VALUE),
    "an argument without text": lambda: PROJECT.warning("of %s", Unspeakable()),
    "fields that are none": lambda: PROJECT.warning("x", extra={"fields": VALUE}),
    "a field without text": lambda: PROJECT.warning("x", extra={"job_id": Unspeakable()}),
    "an event's": lambda: PROJECT.warning("x", extra={"event": Unspeakable()}),
    "keys that are none": lambda: PROJECT.warning("x", extra={"event": "e", "fields": {(1, 2): 1}}),
    "no JSON number": lambda: PROJECT.warning("x", extra={"job_id": float("nan")}),
    "a message that is none": lambda: PROJECT.warning(Unspeakable()),
}


@pytest.mark.parametrize("call", WRONG.values(), ids=WRONG)
def test_a_wrong_call_costs_its_own_line_only(call: Any) -> None:
    """Neither the caller gets an error, nor stderr a traceback with values, nor is it the last."""
    with written() as stderr:
        call()
        wait_until(stderr.getvalue)
        log_event("worker_stopped")
    first, last = (json.loads(line) for line in stderr.getvalue().splitlines())
    assert first["time"] and first["pid"] == os.getpid()
    assert last["event"] == "worker_stopped"
    assert VALUE not in stderr.getvalue()
    assert "NaN" not in stderr.getvalue()


@pytest.mark.parametrize("call", WRONG.values(), ids=WRONG)
def test_the_same_as_text(call: Any) -> None:
    with written("text") as stderr:
        call()
        wait_until(stderr.getvalue)
        log_event("worker_stopped")
    first, last = stderr.getvalue().splitlines()
    assert " worker_stopped pid=" in last
    assert VALUE not in first


def test_what_is_logged_is_what_it_was_then() -> None:
    """Another thread writes; a list that goes on changing does not change the line."""
    growing: list[int] = []
    with written() as stderr:
        for number in range(100):
            growing.append(number)
            PROJECT.warning("%s", growing)
    lines = [json.loads(line)["message"] for line in stderr.getvalue().splitlines()]
    assert lines == [str([*range(number + 1)]) for number in range(100)]


def test_a_full_disk_costs_lines_and_not_the_log(tmp_path: Path) -> None:
    """The lines that did not fit are counted by the first one that does."""
    log = tmp_path / "log"
    with written() as stderr, log.open("wb") as file, Path("/dev/full").open("wb") as full:
        target = os.dup(full.fileno())
        stderr.fileno = lambda: target  # type: ignore[method-assign]
        logs = logging.getLogger("django_leasequeue").handlers[-1]
        for _ in range(3):
            log_event("worker_started")
        wait_until(lambda: logs.dropped == 3)  # type: ignore[attr-defined]
        os.dup2(file.fileno(), target)
        log_event("worker_stopped")
        wait_until(lambda: "worker_stopped" in log.read_text())
        os.close(target)
    first, last = (json.loads(line) for line in log.read_text().splitlines())
    assert (first["event"], first["count"]) == ("log_lines_dropped", 3)
    assert last["event"] == "worker_stopped"


def test_a_torn_line_is_ended_before_the_next(tmp_path: Path) -> None:
    """The disk was full in the middle of it: what comes then is a line of its own."""
    log = tmp_path / "log"
    with written() as stderr, log.open("wb") as file:
        stderr.fileno = file.fileno  # type: ignore[method-assign]
        logs = logging.getLogger("django_leasequeue").handlers[-1]
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("django_leasequeue.logs.os.write", _full_after(10))
            log_event("worker_started")
            wait_until(lambda: logs.dropped == 1)  # type: ignore[attr-defined]
        log_event("worker_stopped")
        wait_until(lambda: "worker_stopped" in log.read_text())
    torn, told, last = log.read_text().splitlines()
    assert len(torn) == 10
    assert json.loads(told)["event"] == "log_lines_dropped"
    assert json.loads(last)["event"] == "worker_stopped"


def _full_after(room: int) -> Callable[[int, bytes], int]:
    real, written = os.write, iter([True])

    def write(descriptor: int, data: bytes) -> int:
        if next(written, False):
            return real(descriptor, data[:room])
        raise OSError(errno.ENOSPC, "No space left on device")

    return write
