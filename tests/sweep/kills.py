"""The sweep over deaths: a process that runs an operation is killed at each of its statements."""

from __future__ import annotations

import json
import os
import signal
import threading
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NoReturn

from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper

from tests.faults import broken_everywhere
from tests.faults.statements import When

#: An operation that takes so long is stuck.
_SECONDS = 60


@dataclass
class Death:
    """Kills its process at the `at`-th statement, before or after the server did it."""

    at: int
    when: When = "before"
    seen: list[str] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def run(self, connection: BaseDatabaseWrapper, sql: str, statement: Callable[[], Any]) -> Any:
        """Run `statement`, unless death comes first."""
        with self._lock:
            self.seen.append(sql)
            dies = len(self.seen) == self.at
        if dies and self.when == "before":
            _die()
        try:
            return statement()
        finally:
            if dies:
                _die()


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def run_in_a_process(act: Callable[[], object], death: Death) -> list[str]:
    """Run `act` in a process of its own, with connections of its own, until its death.

    Returns the statements that it met, none when it was killed. Raises AssertionError when it
    ended in another way.
    """
    connections.close_all()  # whoever inherits one would say goodbye on it
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(read)
        _child(act, death, write)
    os.close(write)
    with os.fdopen(read) as told:
        text = told.read()
    _, status = os.waitpid(pid, 0)
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL and death.at:
        return []
    assert status == 0, f"ended with status {status}: {text}"
    seen: list[str] = json.loads(text)
    assert not death.at, f"never met statement {death.at} among {seen}"
    return seen


def _child(act: Callable[[], object], death: Death, write: int) -> NoReturn:
    """Never return into the test: whatever pytest has open belongs to the parent."""
    code = 1
    try:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(_SECONDS)
        with broken_everywhere(death):
            act()
        os.write(write, json.dumps(death.seen).encode())
        code = 0
    except BaseException:  # noqa: BLE001  (the parent raises it)
        os.write(write, traceback.format_exc().encode())
    finally:
        os._exit(code)
