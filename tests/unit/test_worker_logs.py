"""What a worker does to the project's logging: as little as it left to be done."""

from __future__ import annotations

import contextvars
import io
import json
import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest

from django_leasequeue import logs
from django_leasequeue.events import log_event
from django_leasequeue.logs import BoundJob, JobFilter, JsonLines, TextLines, WorkerLogs, bind_job

JOB = BoundJob(7, "t", "q", 2)
PROJECT = "a_project.reports"


@pytest.fixture
def stderr() -> io.StringIO:
    return io.StringIO()


@contextmanager
def nothing_configured(stderr: io.StringIO) -> Iterator[logging.Logger]:
    """A process whose project has configured nothing; pytest adds handlers for each phase."""
    root, before = logging.getLogger(), sys.stderr
    handlers, root.handlers = root.handlers, []
    sys.stderr = stderr
    try:
        yield root
        assert root.handlers == []
    finally:
        root.handlers, sys.stderr = handlers, before


def bound(function: Any, *args: Any) -> Any:
    context = contextvars.copy_context()
    context.run(bind_job, JOB)
    return context.run(function, *args)


def entries(written: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in written.getvalue().splitlines()]


def test_what_a_handler_logs_has_its_job_and_nothing_else_has(stderr):
    logger = logging.getLogger(PROJECT)
    with nothing_configured(stderr), WorkerLogs("json"):
        bound(logger.warning, "half of %s", "it")
        logger.warning("outside")
    inside, outside = entries(stderr)
    assert (inside["logger"], inside["message"]) == (PROJECT, "half of it")
    about = {name: inside[name] for name in BoundJob._fields}
    assert about == JOB._asdict()
    assert not set(BoundJob._fields) & set(outside)


def test_a_text_line_has_the_job_too(stderr):
    with nothing_configured(stderr), WorkerLogs("text"):
        bound(logging.getLogger(PROJECT).error, "two\nlines")
    line = stderr.getvalue()
    assert line.count("\n") == 1
    assert "message=two\\nlines" in line
    assert "job_id=7 job_type=t queue=q attempt=2" in line


def test_an_event_has_its_own_fields(stderr):
    with nothing_configured(stderr), WorkerLogs("json"):
        bound(lambda: log_event("job_claimed", job_id=9))
    (event,) = entries(stderr)
    assert (event["event"], event["job_id"]) == ("job_claimed", 9)
    assert "attempt" not in event


def test_a_logger_with_a_handler_of_the_project_is_not_written_twice(stderr):
    logger = logging.getLogger(PROJECT)
    mine = io.StringIO()
    handler = logging.StreamHandler(mine)
    handler.addFilter(JobFilter())
    handler.setFormatter(logging.Formatter("%(job_id)s %(job_type)s %(attempt)s %(message)s"))
    logger.addHandler(handler)
    try:
        with nothing_configured(stderr), WorkerLogs("json"):
            bound(logger.warning, "once")
            logger.warning("outside")
    finally:
        logger.removeHandler(handler)
    assert mine.getvalue() == "7 t 2 once\nNone None None outside\n"
    assert stderr.getvalue() == ""


@pytest.mark.parametrize(
    "config",
    [
        {"root": {"handlers": ["console"]}},
        {"loggers": {"": {"handlers": ["console"]}}},
    ],
)
def test_a_root_handler_in_the_settings_is_left_to_do_it(stderr, monkeypatch, config):
    # Setting it for real would configure this process.
    monkeypatch.setattr(logs, "settings", SimpleNamespace(LOGGING={"version": 1, **config}))
    logger = logging.getLogger("django_leasequeue")
    before = (logger.handlers, logger.level, logger.propagate)
    with nothing_configured(stderr) as root, WorkerLogs("json"):
        assert (logger.handlers, logger.level, logger.propagate) == before
        assert root.handlers == []
        log_event("worker_started")
    assert stderr.getvalue() == ""


def test_a_handler_of_its_own_logger_is_left_to_do_it(stderr):
    logger = logging.getLogger("django_leasequeue")
    handler = logging.NullHandler()
    logger.addHandler(handler)
    try:
        with nothing_configured(stderr), WorkerLogs("json"):
            assert logger.handlers == [handler]
            log_event("worker_started")
    finally:
        logger.removeHandler(handler)
    assert stderr.getvalue() == ""


def test_all_is_as_before_afterwards(stderr):
    logger = logging.getLogger("django_leasequeue")
    before = (list(logger.handlers), logger.level, logger.propagate)
    with nothing_configured(stderr) as root:
        with WorkerLogs("json") as mine:
            assert len(root.handlers) == 1
            assert mine.dropped == 0
        assert (list(logger.handlers), logger.level, logger.propagate) == before
        assert root.handlers == []


def test_a_handler_that_came_by_accident_silences_no_event(stderr):
    """`logging.warning()` at import, in some library, makes a root handler at level WARNING."""
    accident = logging.StreamHandler(io.StringIO())
    with nothing_configured(stderr) as root:
        root.addHandler(accident)
        with WorkerLogs("json"):
            log_event("worker_started", worker="w")
            logging.getLogger(PROJECT).warning("theirs")
        root.removeHandler(accident)
    assert [one["event"] for one in entries(stderr)] == ["worker_started"]


@pytest.mark.parametrize("formatter", [JsonLines(), TextLines()])
def test_a_project_may_use_the_formats(formatter):
    record = logging.makeLogRecord(
        {"name": "n", "msg": "m", "event": "job_claimed", "fields": {"job_id": 1}}
    )
    JobFilter().filter(record)
    assert record.job_id == 1  # type: ignore[attr-defined]  # what the filter is for
    assert "job_claimed" in formatter.format(record)


def test_what_a_record_has_stays():
    record = logging.makeLogRecord({"job_id": 99})
    assert bound(JobFilter().filter, record)
    assert (record.job_id, record.attempt) == (99, 2)  # type: ignore[attr-defined]  # as above


def test_frames_of_an_error_and_no_message(stderr):
    def fail() -> None:
        try:
            int("secret")
        except ValueError:
            logging.getLogger(PROJECT).exception("it failed")

    with nothing_configured(stderr), WorkerLogs("json"):
        bound(fail)
    (entry,) = entries(stderr)
    assert entry["frames"][0] == "ValueError"
    assert "secret" not in stderr.getvalue()
