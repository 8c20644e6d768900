"""Handlers that end their process, or leave something alive in it."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
import time
from typing import Any

from django_leasequeue import Fixed, JobContext, job
from tests.process.gate import Gate

_SECONDS = 3600


def _recurse() -> None:
    _recurse()


def _throw(error: BaseException) -> None:
    raise error


_ENDS: dict[str, Any] = {
    "SystemExit": lambda: _throw(SystemExit(0)),
    "sys.exit": lambda: sys.exit("x"),
    "KeyboardInterrupt": lambda: _throw(KeyboardInterrupt()),
    "GeneratorExit": lambda: _throw(GeneratorExit()),
    "CancelledError": lambda: _throw(asyncio.CancelledError()),
    "RecursionError": _recurse,
    "MemoryError": lambda: bytearray(2**62),
    "os._exit": lambda: os._exit(3),
    "SIGSEGV": lambda: os.kill(os.getpid(), signal.SIGSEGV),
    "SIGKILL": lambda: os.kill(os.getpid(), signal.SIGKILL),
    "SIGTERM": lambda: os.kill(os.getpid(), signal.SIGTERM),
}


@job("die.ends", backoff=Fixed(0))
def ends(how: str) -> None:
    _ENDS[how]()


@job("die.ends_async", backoff=Fixed(0))
async def ends_async(how: str) -> None:
    await asyncio.sleep(0)
    _ENDS[how]()


@job("die.leaves_threads")
def leaves_threads() -> int:
    """Leave one of each kind alive."""
    for daemon in (True, False):
        threading.Thread(target=time.sleep, args=(_SECONDS,), daemon=daemon).start()
    return os.getpid()


@job("die.dies", takes_context=True, backoff=Fixed(0))
def dies(context: JobContext, gate: str, runs: int) -> int:
    """Die in each of the first runs, once the gate lets it; then return the pid."""
    Gate(gate).say(f"run-{context.claims}-pid-{os.getpid()}")
    Gate(gate).wait(f"go-{context.claims}", timeout=_SECONDS)
    if context.claims <= runs:
        os._exit(3)
    return os.getpid()


@job("die.keeps_its_place", takes_context=True, timeout=500, backoff=Fixed(0))
def keeps_its_place(context: JobContext, gate: str) -> list[Any]:
    """Run 1 is released, run 2 crashes, run 3 fails, run 4 ends; each saves its number first."""
    place = context.last_checkpoint
    seen = [context.claims, context.attempt, place]
    trail = [*(place["trail"] if place else []), seen[:2]]
    context.checkpoint({"trail": trail})
    Gate(gate).say(f"run-{context.claims}")
    if context.claims == 1:
        while not context.stopping:
            time.sleep(0.02)
        Gate(gate).say("stopping")
        time.sleep(_SECONDS)
    if context.claims == 2:
        os._exit(3)
    if context.claims == 3:
        raise ValueError
    remaining = context.remaining()
    assert remaining is not None and 490 < remaining <= 500
    return trail
