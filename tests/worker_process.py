"""A running `runworker`: its log as events, its signals, its exit code."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from tests.harness.tied import tied

EVENT_SECONDS = 30
EXIT_SECONDS = 30

Event = dict[str, Any]


class WorkerProcess:
    """A worker in a process group of its own, whose stderr is read as it is written.

    `events` are its log lines, `lines` what it wrote on stderr that is no JSON object (a
    traceback, say), `output` its stdout.
    """

    def __init__(self, command: Sequence[str], env: Mapping[str, str], output: Path) -> None:
        self.events: list[Event] = []
        self.lines: list[str] = []
        self._output = output
        self._news = threading.Condition()
        self._ended = False
        with output.open("wb") as stdout:
            self._process = subprocess.Popen(
                tied(command),
                env=env,
                stdin=subprocess.DEVNULL,
                stdout=stdout,
                stderr=subprocess.PIPE,
                text=True,
                start_new_session=True,
            )
        self._reader = threading.Thread(target=self._read, name=f"stderr of {self.pid}")
        self._reader.start()

    @property
    def pid(self) -> int:
        """The worker's process id."""
        return self._process.pid

    @property
    def code(self) -> int | None:
        """Its exit code once it has ended."""
        return self._process.poll()

    @property
    def output(self) -> str:
        """What it wrote on stdout so far."""
        return self._output.read_text()

    def named(self, event: str, **fields: Any) -> list[Event]:
        """Return the events of that name so far, with these fields."""
        return [
            entry
            for entry in self.events
            if entry.get("event") == event
            and all(entry.get(name) == value for name, value in fields.items())
        ]

    def wait_event(
        self, event: str, *, timeout: float = EVENT_SECONDS, count: int = 1, **fields: Any
    ) -> Event:
        """Return the `count`-th event of that name with these fields, past ones included.

        AssertionError, with all that was logged, when it does not come or the worker ends first.
        """
        with self._news:
            self._news.wait_for(
                lambda: self._ended or len(self.named(event, **fields)) >= count, timeout
            )
            found = self.named(event, **fields)
        if len(found) < count:
            state = "ended" if self._ended else f"still ran after {timeout} s"
            raise AssertionError(f"no {event} {fields or ''}: the worker {state}\n{self.log()}")
        return found[count - 1]

    def signal(self, number: int) -> None:
        """Send a signal to the worker's control process."""
        self._process.send_signal(number)

    def wait(self, timeout: float = EXIT_SECONDS) -> int:
        """Return the exit code once it has ended and all it logged was read (-9 if killed)."""
        try:
            code = self._process.wait(timeout)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"still runs after {timeout} s\n{self.log()}") from None
        self._reader.join(timeout)
        return code

    def kill(self) -> None:
        """End it and its whole process group, if anything of it is left."""
        with suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        self._process.wait()
        self._reader.join()

    def log(self) -> str:
        """Return all that it logged, for a message."""
        return "\n".join([*map(json.dumps, self.events), *self.lines])

    def _read(self) -> None:
        assert self._process.stderr
        with self._process.stderr as lines:
            for line in lines:
                with self._news:
                    self._note(line)
                    self._news.notify_all()
        with self._news:
            self._ended = True
            self._news.notify_all()

    def _note(self, line: str) -> None:
        try:
            entry = json.loads(line)
        except ValueError:
            entry = None
        if isinstance(entry, dict):
            self.events.append(entry)
        else:
            self.lines.append(line.rstrip("\n"))
