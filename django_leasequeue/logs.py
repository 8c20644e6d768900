"""Log lines of a worker on stderr: one JSON object, or one line of text, an event or a record.

Written by a thread of their own from a bounded queue: a full pipe or disk never blocks the worker,
it costs lines, and how many is logged.
"""

from __future__ import annotations

import json
import logging
import os
import select
import sys
import threading
from collections.abc import Mapping
from contextlib import suppress
from contextvars import ContextVar
from copy import copy
from datetime import UTC, datetime
from logging.handlers import QueueHandler, QueueListener
from queue import Empty, SimpleQueue
from typing import Any, NamedTuple, Self

from django.conf import settings
from pythonjsonlogger.json import JsonFormatter

from django_leasequeue.events import frames_of
from django_leasequeue.printable import printable, printable_json

__all__ = ["BoundJob", "JobFilter", "JsonLines", "TextLines", "WorkerLogs", "bind_job"]

_CAPACITY = 10_000
_AT_ONCE = 200
_LAST_LINES_SECONDS = 2.0


class BoundJob(NamedTuple):
    """What is told of a job in whatever its handler logs; never its payload."""

    job_id: int
    job_type: str
    queue: str
    attempt: int


_bound: ContextVar[BoundJob | None] = ContextVar("leasequeue_job", default=None)


def bind_job(job: BoundJob) -> None:
    """Bind what is logged in the current context, and in its copies, to `job` for good.

    For a context of the job's own: whatever runs outside it is not bound.
    """
    _bound.set(job)


class JobFilter(logging.Filter):
    """Gives each record `job_id`, `job_type`, `queue` and `attempt`; drops none.

    For the project's own handlers. They are of the job whose handler logs, or which an event is
    about, else None; what a record has already stays.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        bound = _bound.get()
        told: dict[str, Any] = {} if bound is None else bound._asdict()
        told |= _told(record)
        for name in BoundJob._fields:
            if not hasattr(record, name):
                setattr(record, name, told.get(name))
        return True


def _told(record: logging.LogRecord) -> Mapping[str, Any]:
    """Return an event's fields; a project's record may have anything by that name."""
    fields = getattr(record, "fields", None)
    return fields if isinstance(fields, Mapping) else {}


def _message(record: logging.LogRecord) -> str:
    """Return a record's message, or why there is none: a wrong call must not break the line."""
    try:
        return record.getMessage()
    except Exception as error:  # noqa: BLE001  (any __str__ of the project's)
        return f"(its message cannot be shown: {type(error).__qualname__})"


def _fields(record: logging.LogRecord) -> dict[str, Any]:
    event = getattr(record, "event", None)
    moment = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
    fields: dict[str, Any] = {"event": event or "log", "time": moment, "pid": os.getpid()}
    if event is None:
        fields |= {"logger": record.name, "message": _message(record)}
        about = {name: getattr(record, name, None) for name in BoundJob._fields}
        fields |= {name: value for name, value in about.items() if value is not None}
    fields |= _told(record)
    if record.exc_info and record.exc_info[1] is not None:
        fields["frames"] = frames_of(record.exc_info[1])
    return fields


class JsonLines(JsonFormatter):
    """One compact JSON object a line."""

    def __init__(self) -> None:
        compact = json.JSONEncoder(
            separators=(",", ":"), ensure_ascii=False, allow_nan=False, default=str
        )
        super().__init__(json_serializer=lambda data, **_options: compact.encode(data))

    def process_log_record(self, log_data: dict[str, Any]) -> dict[str, Any]:
        return log_data

    def format(self, record: logging.LogRecord) -> str:
        try:
            line: str = self.jsonify_log_record(_fields(record))
        except Exception as error:  # noqa: BLE001  (values of the project's may do anything)
            line = json.dumps(_unwritable(record, error))
        return printable_json(line)


class TextLines(logging.Formatter):
    """`time event name=value …`, newlines and all that a terminal could obey made visible."""

    def format(self, record: logging.LogRecord) -> str:
        try:
            return self._line(_fields(record))
        except Exception as error:  # noqa: BLE001  (as above)
            return self._line(_unwritable(record, error))

    def _line(self, fields: dict[str, Any]) -> str:
        head = f"{fields.pop('time')} {fields.pop('event')}"
        rest = " ".join(f"{name}={value!s}" for name, value in fields.items())
        return printable(f"{head} {rest}")


def _unwritable(record: logging.LogRecord, error: Exception) -> dict[str, Any]:
    """Return what is logged in place of a record whose own values cannot be written."""
    moment = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
    why = f"(its fields cannot be written: {type(error).__qualname__})"
    known = {"event": "log", "time": moment, "pid": os.getpid()}
    return {**known, "logger": str(record.name), "message": why}


class _BoundRecords(JobFilter):
    """For this module's own lines: those of events have nothing but the event's fields."""

    def filter(self, record: logging.LogRecord) -> bool:
        return hasattr(record, "event") or super().filter(record)


class _Dropping(QueueHandler):
    """Puts records into the bounded queue, or counts them as dropped."""

    queue: SimpleQueue[Any]

    def __init__(self, records: SimpleQueue[Any]) -> None:
        super().__init__(records)
        # Here, for the writing thread knows no handler's context.
        self.addFilter(_BoundRecords())
        self.dropped = self.dropped_ever = 0
        self._count_lock = threading.Lock()

    def prepare(self, record: logging.LogRecord) -> logging.LogRecord:
        if not record.args and isinstance(record.msg, str):
            return record
        # Now, for what is logged may change or vanish before the line is written; in a copy, for
        # the record is other handlers' too.
        ready = copy(record)
        ready.msg, ready.args = _message(record), None
        return ready

    def enqueue(self, record: logging.LogRecord) -> None:
        if self.queue.qsize() < _CAPACITY:  # threads at the same moment may put one more each
            self.queue.put(record)
            return
        self.drop(1)

    def drop(self, count: int) -> None:
        """Count lines that will not be written."""
        with self._count_lock:
            self.dropped += count
            self.dropped_ever += count

    def tell_later(self, count: int) -> None:
        """Give back what `take_dropped` returned and nobody was told."""
        with self._count_lock:
            self.dropped += count

    def take_dropped(self) -> int:
        """Return how many records were dropped since the last call."""
        with self._count_lock:
            dropped, self.dropped = self.dropped, 0
        return dropped


class _Stream(logging.StreamHandler[Any]):
    """Writes lines, and before them how many were lost on the way.

    Straight to the descriptor where there is one: a thread that is held up by a full pipe must not
    hold a buffer's lock that the interpreter wants at its end.
    """

    def __init__(self, source: _Dropping) -> None:
        super().__init__(sys.stderr)
        self._source = source
        #: Whether the last write ended within a line, which the next one must end.
        self._torn = False

    def write(self, records: list[logging.LogRecord]) -> None:
        """Write these, and before them how many were lost."""
        try:
            descriptor = self.stream.fileno()
        except (AttributeError, OSError, ValueError):
            for record in records:
                self.emit(record)
            return
        if dropped := self._source.take_dropped():
            lost = logging.LogRecord("django_leasequeue", logging.WARNING, "", 0, "", (), None)
            lost.event, lost.fields = "log_lines_dropped", {"count": dropped}
            if self._put(descriptor, [lost]):
                self._source.tell_later(dropped)
        self._source.drop(self._put(descriptor, records))

    def _put(self, descriptor: int, records: list[logging.LogRecord]) -> int:
        """Write these and return how many could not be: a full disk, a reader that is gone."""
        text = "".join(f"{line}\n" for line in map(self.format, records))
        data = text.encode("utf-8", "backslashreplace")
        left = b"\n" + data if self._torn else data
        while left:
            try:
                written = os.write(descriptor, left)
            except BlockingIOError:
                select.select([], [descriptor], [])
            except OSError:
                return min(left.count(b"\n"), len(records))
            else:
                self._torn = left[written - 1 : written] != b"\n"
                left = left[written:]
        return 0


class _Listener(QueueListener):
    """Writes in one go what has gathered since its last write: a busy worker logs thousands."""

    queue: SimpleQueue[Any]

    def __init__(self, records: SimpleQueue[Any], stream: _Stream) -> None:
        super().__init__(records)
        self._stream = stream
        self._ends = False

    def dequeue(self, block: bool) -> Any:
        """Return a list of records, or at the end None."""
        found: list[Any] = []
        with suppress(Empty):
            while not self._ends and len(found) < _AT_ONCE:
                record = self.queue.get(block and not found)
                self._ends = record is None
                if record is not None:
                    found.append(record)
        return found or None

    def handle(self, record: Any) -> None:
        self._stream.write(record)

    def enqueue_sentinel(self) -> None:
        self.queue.put(None)


class _LastResort(logging.Filter):
    """Lets through what no handler of the project's would get: such lines are ours to write."""

    def filter(self, record: logging.LogRecord) -> bool:
        logger: logging.Logger | None = logging.getLogger(record.name)
        while logger is not None and logger.parent is not None:
            if logger.handlers:
                return False
            logger = logger.parent if logger.propagate else None
        return True


class _Forward(logging.Handler):
    """On the root logger: gives the worker's handler what would go to logging's last resort."""

    def __init__(self, target: logging.Handler) -> None:
        super().__init__()
        self._target = target
        self.addFilter(_LastResort())

    def emit(self, record: logging.LogRecord) -> None:
        self._target.handle(record)


def _root_is_configured() -> bool:
    """Tell whether the project's LOGGING has a handler for everything."""
    config = getattr(settings, "LOGGING", None) or {}
    root = config.get("root") or (config.get("loggers") or {}).get("") or {}
    return bool(root.get("handlers"))


class WorkerLogs:
    """Context manager: while it is open, `django_leasequeue` logs to stderr.

    From level INFO on, unless the project has set that logger's level. So do loggers for which the
    project has no handler at all. Does nothing when the project's LOGGING has given that logger,
    or the root logger, a handler of its own.
    """

    def __init__(self, log_format: str = "json") -> None:
        self._logger = logging.getLogger("django_leasequeue")
        self._forward: _Forward | None = None
        self._format = log_format
        self._handler: _Dropping | None = None
        self._listener: QueueListener | None = None

    @property
    def dropped(self) -> int:
        """How many lines could not be written so far."""
        return self._handler.dropped_ever if self._handler is not None else 0

    def __enter__(self) -> Self:
        if self._logger.handlers or _root_is_configured():
            return self
        self._handler = _Dropping(SimpleQueue())
        stream = _Stream(self._handler)
        stream.setFormatter(JsonLines() if self._format == "json" else TextLines())
        self._listener = _Listener(self._handler.queue, stream)
        self._listener.start()
        self._logger.addHandler(self._handler)
        self._before = (self._logger.level, self._logger.propagate)
        if self._logger.level == logging.NOTSET:
            self._logger.setLevel(logging.INFO)
        self._logger.propagate = False
        root = logging.getLogger()
        if not root.handlers:
            self._forward = _Forward(self._handler)
            root.addHandler(self._forward)
        return self

    def __exit__(self, *exc_info: object) -> None:
        if self._handler is None or self._listener is None:
            return
        if self._forward is not None:
            logging.getLogger().removeHandler(self._forward)
            self._forward = None
        self._logger.removeHandler(self._handler)
        self._logger.setLevel(self._before[0])
        self._logger.propagate = self._before[1]
        self._end_listener(self._listener)
        self._handler.close()

    @staticmethod
    def _end_listener(listener: QueueListener) -> None:
        """Let the last lines be written, for a bounded time: nobody may be reading them."""
        writer = threading.Thread(target=listener.stop, name="leasequeue-logs-end", daemon=True)
        writer.start()
        writer.join(_LAST_LINES_SECONDS)
