"""A worker inside the test's process: in a thread, with sessions of its own, ended for certain."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.db import connections

from django_leasequeue.runtime.worker import Worker
from tests.faults import Rival

QUICK = {"solo": True, "poll_min": 0.01, "poll_max": 0.05, "grace": 600}


@contextmanager
def working(**options: Any) -> Iterator[Worker]:
    """Let a worker with these options run inside the block; afterwards it has ended with 0."""
    worker = Worker(**{**QUICK, **options})
    rival = Rival(lambda: _run(worker))
    try:
        yield worker
    finally:
        worker.stop()
        code = rival.result()
    assert code == 0


def drain(**options: Any) -> None:
    """Run a worker until nothing is due, reserved or soon to be retried."""
    worker = Worker(**{**QUICK, "drain": True, **options})
    assert Rival(lambda: _run(worker)).result() == 0


def _run(worker: Worker) -> int:
    try:
        return worker.run()
    finally:
        connections.close_all()
