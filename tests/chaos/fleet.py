"""The storm's workers: eight of several shapes, one with a false clock, two behind bad wires."""

from __future__ import annotations

import os
import random
import signal
import sys
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self
from urllib.parse import urlsplit

from tests.faults.faketime import environment, library
from tests.faults.proxy import Proxy
from tests.faults.tree import Process, children_now, tree_of
from tests.worker_process import WorkerProcess

MANAGE = Path(__file__).resolve().parents[2] / "testproject" / "manage.py"
LEASE = 4.0
SHAPES = (
    ("--processes", "2"),
    ("--processes", "2"),
    ("--processes", "1", "--threads", "3"),
    ("--processes", "2", "--queues", "storm-c,storm-b,storm-a"),
)
#: One file for all writers; a host's clock is the queue's clock there.
ON_SQLITE = 3
WORKERS = 8
#: The places of those who reach the server by a wire that breaks.
BEHIND_WIRES = (1, 2)
_HOST = "127.0.0.1"
CLOCKS = ("+10m", "-10m")


@dataclass
class Slot:
    """A worker's place: who is there, what is being done to it, who was there before."""

    number: int
    options: tuple[str, ...]
    process: WorkerProcess | None = None
    wire: Proxy | None = None
    #: Nothing more is to be done to it now: it is frozen, or told to end.
    busy: bool = False
    #: Its end was wanted.
    told: bool = False
    past: list[WorkerProcess] = field(default_factory=list)

    @property
    def back(self) -> bool:
        """Tell whether a worker is there and has started."""
        return self.process is not None and bool(self.process.named("worker_started"))


class Fleet:
    """All workers; their output goes to `folder`."""

    def __init__(self, folder: Path, chance: random.Random, *, on_sqlite: bool) -> None:
        self._folder = folder
        self._chance = chance
        self._started = 0
        count = ON_SQLITE if on_sqlite else WORKERS
        self.slots = [Slot(number, SHAPES[number % len(SHAPES)]) for number in range(count)]
        self.false_clock = not on_sqlite and library() is not None
        if not on_sqlite:
            parts = urlsplit(os.environ["DATABASE_URL"])
            for number in BEHIND_WIRES:
                self.slots[number].wire = Proxy((parts.hostname or _HOST, parts.port or 0))

    def __enter__(self) -> Self:
        for wire in self.wires:
            wire.__enter__()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.kill()
        for wire in self.wires:
            wire.__exit__(*exc_info)

    @property
    def wires(self) -> list[Proxy]:
        """The wires that break."""
        return [slot.wire for slot in self.slots if slot.wire]

    def start(self, slot: Slot) -> None:
        """Start a worker in this slot."""
        self._started += 1
        options = ["--lease", f"{LEASE}", "--grace", "2", "--name", f"storm-{slot.number}"]
        command = [sys.executable, "-W", "error", str(MANAGE), "runworker", *options]
        output = self._folder / f"worker-{self._started}.out"
        env = {**os.environ, **self._clock(slot), **self._way(slot)}
        slot.process = WorkerProcess([*command, *slot.options], env, output)
        slot.busy = slot.told = False

    def _clock(self, slot: Slot) -> dict[str, str]:
        if slot.number or not self.false_clock:
            return {}
        return environment(CLOCKS[len(slot.past) % len(CLOCKS)])

    def _way(self, slot: Slot) -> dict[str, str]:
        if slot.wire is None:
            return {}
        parts = urlsplit(os.environ["DATABASE_URL"])
        login = parts.netloc.rpartition("@")[0]
        place = f"{login}@{_HOST}:{slot.wire.port}"
        return {"DATABASE_URL": parts._replace(netloc=place).geturl()}

    def leave(self, slot: Slot) -> None:
        """Empty the slot of a worker that has ended."""
        assert slot.process
        slot.past.append(slot.process)
        slot.process, slot.busy = None, True

    def pick(self, *, with_children: bool = False) -> Slot | None:
        """Return a running worker's slot by chance; None when all are busy."""
        free = [slot for slot in self.slots if slot.process and not slot.busy]
        if with_children:
            free = [slot for slot in free if self.children(slot)]
        return self._chance.choice(free) if free else None

    def children(self, slot: Slot) -> list[Process]:
        """Return the children of this moment."""
        return children_now(slot.process) if slot.process else []

    def tree(self, slot: Slot) -> list[Process]:
        """Return control, the helpers and the children."""
        return tree_of(slot.process.pid) if slot.process else []

    def events(self) -> Counter[str]:
        """Return how often each event was logged by all workers that ever ran.

        Those about a job count under "event type" as well.
        """
        events = [event for one in self._all() for event in one.events]
        named = Counter(str(event.get("event")) for event in events)
        named.update(f"{event.get('event')} {event.get('job_type')}" for event in events)
        return named

    def complaints(self) -> list[str]:
        """Return what workers wrote on stderr that is no event: tracebacks and warnings."""
        return [line for one in self._all() for line in one.lines]

    def kill(self) -> None:
        """End all that is left."""
        for slot in self.slots:
            for one in self.tree(slot):
                with suppress(ProcessLookupError):
                    one.signal(signal.SIGKILL)
            if slot.process:
                slot.process.kill()

    def _all(self) -> list[WorkerProcess]:
        return [
            one
            for slot in self.slots
            for one in [*slot.past, *([slot.process] if slot.process else [])]
        ]
