"""What a sub-command prints: lines safe for a terminal, aligned columns, JSON, progress.

Names of queues and types come from everybody who may INSERT a job: no control character of theirs
reaches a terminal.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, Protocol, TextIO
from unicodedata import east_asian_width

from django_leasequeue.printable import printable

__all__ = ["Advancing", "Output", "moment", "printable"]

_GAP = "  "
#: Cursor to the top, and what is below it erased.
_TOP = "\x1b[H\x1b[2J"
#: A progress that nobody watches says so often how far it is.
_SECONDS_BETWEEN_LINES = 5.0


class Advancing(Protocol):
    """A progress under way."""

    def advance(self, number: int = 1) -> None:
        """Note that so many more are done."""


def moment(value: datetime | None) -> str:
    """Return a time in UTC to the second, as ISO 8601 has it; "-" for none."""
    if value is None:
        return "-"
    return value.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


class Output:
    """Where a sub-command writes: answers on `stdout`, the rest on `stderr`."""

    def __init__(self, stdout: Any, stderr: Any) -> None:
        self._stdout = stdout
        self._stderr = stderr

    def line(self, text: str = "") -> None:
        """Write one line; what could disturb a terminal is escaped, line breaks too."""
        _write(self._stdout, text)

    def warn(self, text: str) -> None:
        """Write one line on stderr, which is no part of the answer."""
        _write(self._stderr, text)

    def json(self, value: Any) -> None:
        """Write one document in one line; times are ISO 8601 in UTC."""
        self._stdout.write(json.dumps(value, allow_nan=False, default=_plain))

    def table(self, titles: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
        """Write aligned columns under their titles; numbers to the right, None and "" as "-"."""
        body = [list(row) for row in rows]
        right = {
            column
            for column in range(len(titles))
            if body and all(isinstance(row[column], int | float) for row in body)
        }
        cells = [list(titles), *([_cell(value) for value in row] for row in body)]
        widths = [max(map(_width, column)) for column in zip(*cells, strict=True)]
        for row in cells:
            padded = [
                _padded(text, widths[column], to_the_right=column in right)
                for column, text in enumerate(row)
            ]
            self.line(_GAP.join(padded).rstrip())

    def again(self) -> None:
        """Begin anew at the top of a terminal; elsewhere after an empty line."""
        self._stdout.write(_TOP if self._stdout.isatty() else "\n", ending="")

    def flush(self) -> None:
        """Hand everything written to whoever reads it; raises BrokenPipeError if none does."""
        self._stdout.flush()
        self._stderr.flush()

    @contextmanager
    def progress(self, total: int | None, label: str) -> Iterator[Advancing]:
        """Show on stderr how far a long work is: a bar on a terminal, else a line now and then.

        The bar needs the extra `cli`. `total` is None where nobody knows it.
        """
        bar = _bar(self._stderr, total, printable(label))
        if bar is None:
            lines = _Lines(self, total, label)
            yield lines
            lines.say()
            return
        with bar:
            yield _Bar(bar)


class _Bar:
    """A progress as tqdm shows it."""

    def __init__(self, bar: Any) -> None:
        self._bar = bar

    def advance(self, number: int = 1) -> None:
        self._bar.update(number)


class _Lines:
    """A progress as lines."""

    def __init__(self, out: Output, total: int | None, label: str) -> None:
        self._out, self._label = out, label
        self._of = "" if total is None else f"/{total}"
        self._done = 0
        self._said_at = time.monotonic()

    def advance(self, number: int = 1) -> None:
        self._done += number
        if time.monotonic() - self._said_at >= _SECONDS_BETWEEN_LINES:
            self.say()

    def say(self) -> None:
        self._said_at = time.monotonic()
        self._out.warn(f"{self._label}: {self._done}{self._of}")


def _bar(stderr: Any, total: int | None, label: str) -> Any:
    """Return a bar, or None where there is no terminal or no tqdm."""
    if not stderr.isatty():
        return None
    try:
        from tqdm import tqdm
    except ImportError:
        return None
    return tqdm(total=total, desc=label, file=stderr, dynamic_ncols=True)


def _write(stream: TextIO, text: str) -> None:
    encoding = getattr(stream, "encoding", None) or "utf-8"
    shown = printable(text).encode(encoding, "backslashreplace").decode(encoding)
    stream.write(shown + "\n")  # Django's wrapper adds none where there is one


def _plain(value: object) -> str:
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat()
    raise TypeError(f"{type(value).__name__} is not JSON")


def _cell(value: object) -> str:
    if value is None or value == "":
        return "-"
    return printable(str(value))


def _width(text: str) -> int:
    return len(text) + sum(east_asian_width(char) in "WF" for char in text)


def _padded(text: str, width: int, *, to_the_right: bool) -> str:
    space = " " * (width - _width(text))
    return space + text if to_the_right else text + space
