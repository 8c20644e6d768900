"""Coroutine handlers, and plain ones that run coroutines."""

from __future__ import annotations

import asyncio
import threading
import time
from contextvars import ContextVar
from typing import Any

from asgiref.sync import sync_to_async
from django.db import connection

from django_leasequeue import JobContext, job
from reports.models import GeneratedReport
from tests.process.gate import Gate

_SECONDS = 3600
_left: ContextVar[str] = ContextVar("left", default="nothing")


def _session() -> int:
    """Write a row and return the session's number at the server."""
    key = f"{time.monotonic_ns()}"
    GeneratedReport.objects.create(
        idempotency_key=key, tenant_id="co", report_month="2042-01", result_json={}
    )
    sql = {"mysql": "SELECT CONNECTION_ID()", "postgresql": "SELECT pg_backend_pid()"}
    with connection.cursor() as cursor:
        cursor.execute(sql.get(connection.vendor, "SELECT 0"))
        return int(cursor.fetchone()[0])


@job("co.sync_orm")
async def sync_orm() -> None:
    _session()


@job("co.sync_orm_in_run")
def sync_orm_in_run() -> None:
    asyncio.run(sync_orm())


@job("co.orm")
async def orm() -> dict[str, Any]:
    session = await sync_to_async(_session)()
    assert await GeneratedReport.objects.filter(tenant_id="co").aexists()
    return {"session": session, "left": await sync_to_async(_left.get)()}


@job("co.completes", takes_context=True)
async def completes(context: JobContext, text: str) -> str:
    await asyncio.sleep(0)
    return await context.acomplete(lambda: f"{text} {_session()}", {"text": text})


@job("co.completes_too_late", takes_context=True)
async def completes_too_late(context: JobContext, gate: str) -> None:
    """Complete once the test says so: the first attempt's lease is over by then."""
    Gate(gate).say(f"started-{context.job_id}")
    await asyncio.to_thread(Gate(gate).wait, "complete")
    await context.acomplete(_session)


@job("co.completes_slowly", takes_context=True)
async def completes_slowly(context: JobContext, gate: str) -> None:
    """Stay in the transaction until the test says so."""

    def work() -> None:
        _session()
        Gate(gate).wait("go")

    try:
        await context.acomplete(work)
    except BaseException as error:
        Gate(gate).say(f"{type(error).__name__}-{context.job_id}")
        raise


@job("co.plain_orm")
def plain_orm() -> dict[str, Any]:
    return {"session": _session(), "left": _left.get()}


@job("co.run")
def run() -> dict[str, Any]:
    """Run a loop of one's own, and use the thread's connection beside it."""
    return {"session": _session(), "left": asyncio.run(_nested())}


async def _nested() -> str:
    await asyncio.sleep(0)
    _left.set("in a loop")
    return _left.get()


@job("co.leaves_a_variable")
async def leaves_a_variable() -> str:
    _left.set("in a coroutine")
    await sync_to_async(_left.set)("in its thread")
    await asyncio.sleep(0)
    return _left.get()


@job("co.leaves_a_transaction")
async def leaves_a_transaction() -> None:
    await sync_to_async(_begin)()


def _begin() -> None:
    connection.set_autocommit(False)
    _session()


@job("co.leaves_a_task")
async def leaves_a_task() -> str:
    """Leave a task and a thread of the loop's pool behind."""
    _tasks.add(asyncio.get_running_loop().create_task(asyncio.sleep(_SECONDS)))
    await asyncio.to_thread(time.sleep, 0)
    return threading.current_thread().name


_tasks: set[Any] = set()


@job("co.sleep", takes_context=True)
async def sleep(context: JobContext, gate: str) -> None:
    Gate(gate).say(f"started-{context.job_id}")
    try:
        await asyncio.sleep(_SECONDS)
    except BaseException as error:
        Gate(gate).say(f"{type(error).__name__}-{context.job_id}")
        raise


@job("co.passes_over_all", takes_context=True)
async def passes_over_all(context: JobContext, gate: str) -> None:
    Gate(gate).say(f"started-{context.job_id}")
    while True:
        try:
            await asyncio.sleep(_SECONDS)
        except:  # noqa: E722
            Gate(gate).say(f"passed-over-{context.job_id}")


@job("co.blocks_its_loop", takes_context=True)
async def blocks_its_loop(context: JobContext, gate: str) -> None:
    Gate(gate).say(f"started-{context.job_id}")
    time.sleep(_SECONDS)  # noqa: ASYNC251


@job("co.waits_in_a_thread", takes_context=True)
async def waits_in_a_thread(context: JobContext, gate: str) -> None:
    Gate(gate).say(f"started-{context.job_id}")
    await sync_to_async(time.sleep)(_SECONDS)
