"""The storm's jobs: every way to end, and every way to write what must be there once.

How each may end is in kinds.py.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
import time
from typing import Any

from asgiref.sync import sync_to_async
from django.db import connection

from django_leasequeue import Fixed, JobContext, Snooze, cancel, job
from tests.chaos import effects

#: What the storm spends is not to be what ends a job. The timeout is for a handler whose own
#: statement waits behind a wire that went silent: PostgreSQL's driver knows no end of that.
_ENOUGH: dict[str, Any] = {
    "max_attempts": 1000,
    "max_crashes": 1000,
    "backoff": Fixed(0.1),
    "timeout": 8,
}
#: On SQLite no lease can be renewed while such a handler runs: it has to have a limit.
_ATOMIC: dict[str, Any] = {"timeout": 1} if connection.vendor == "sqlite" else {}
#: How long a handler stays where it is. On SQLite a transaction that does keeps all others waiting.
_LONGEST = 0.05 if connection.vendor == "sqlite" else 1.0


def _effect(context: JobContext, name: str = "done", *, fenced: bool = True) -> None:
    effects.write(context.job_id, context.claims, name, fenced=fenced)


def _complete(context: JobContext) -> None:
    """Stay a while, before the transaction or in it: what stops is to stop in the middle."""
    if random.random() < 0.5:
        _dwell()
    with context.complete():
        _effect(context)
        if random.random() < 0.3:
            _dwell()


def _dwell() -> None:
    time.sleep(random.uniform(0, _LONGEST))


@job("storm.plain", takes_context=True, **_ENOUGH)
def plain(context: JobContext) -> dict[str, int]:
    """Write without a fence: at least once."""
    _dwell()
    _effect(context, fenced=False)
    _dwell()
    return {"claim": context.claims}


@job("storm.atomic", atomic=True, takes_context=True, **{**_ENOUGH, **_ATOMIC})
def atomic(context: JobContext) -> None:
    """Write early, and stay uncommitted: what stands still here comes back without its lease."""
    _effect(context)
    _dwell()


@job("storm.completing", takes_context=True, **_ENOUGH)
def completing(context: JobContext) -> None:
    _complete(context)


@job("storm.charging", takes_context=True, **_ENOUGH)
def charging(context: JobContext) -> None:
    """Do something once in the job's life, and something more before the end."""
    with context.effect("charge") as first:
        if first:
            _effect(context)
            _dwell()
    _dwell()


@job("storm.coroutine", takes_context=True, **_ENOUGH)
async def coroutine(context: JobContext) -> None:
    await sync_to_async(_effect)(context, "early", fenced=False)
    await asyncio.sleep(random.uniform(0, _LONGEST))
    await context.acomplete(lambda: _effect(context))


@job("storm.failing", takes_context=True, **_ENOUGH)
def failing(context: JobContext) -> None:
    if context.attempt <= 2:
        raise RuntimeError("twice")
    _complete(context)


@job("storm.snoozing", takes_context=True, **_ENOUGH)
def snoozing(context: JobContext) -> None:
    if context.claims <= 2:
        raise Snooze(random.uniform(0.1, 1))
    _complete(context)


@job("storm.slow", takes_context=True, **_ENOUGH)
def slow(context: JobContext, seconds: float) -> None:
    time.sleep(seconds)
    _complete(context)


@job("storm.crashing", takes_context=True, **_ENOUGH)
def crashing(context: JobContext) -> None:
    """Take the child along, once."""
    if context.claims == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    _complete(context)


@job("storm.cancelling", takes_context=True, **_ENOUGH)
def cancelling(context: JobContext) -> None:
    """Cancel this very job: what it commits afterwards is refused."""
    cancel(context.job_id)
    _complete(context)


def _buried(context: JobContext, error: BaseException) -> None:
    _effect(context, "buried", fenced=False)


@job(
    "storm.hopeless",
    takes_context=True,
    max_attempts=3,
    max_crashes=1000,
    backoff=Fixed(0.1),
    failed=_buried,
)
def hopeless(context: JobContext) -> None:
    raise RuntimeError("always")


@job("storm.poison", max_attempts=1000, max_crashes=2)
def poison() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


@job("storm.tick", takes_context=True, **_ENOUGH)
def tick(context: JobContext) -> None:
    _complete(context)
