"""Handlers that last, in ways that are easier or harder to end from outside."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import time
from contextlib import contextmanager
from typing import Any

from django.db import connection, connections

from django_leasequeue import Fixed, JobContext, job
from reports.models import GeneratedReport
from tests.process.gate import Gate
from tests.waiting import wait_until

LONG = 3600
_ENDLESS = {
    "mysql": "SELECT SLEEP(3600)",
    "postgresql": "SELECT pg_sleep(3600)",
    "sqlite": "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i FROM n) SELECT SUM(i) FROM n",
}


@job("hang.pid")
def tell_pid() -> int:
    return os.getpid()


@job("hang.sleep", takes_context=True, backoff=Fixed(0))
def sleep(context: JobContext, gate: str, seconds: float = LONG) -> int:
    with _telling(gate, context):
        time.sleep(seconds)
    return os.getpid()


@job("hang.edge", takes_context=True)
def edge(context: JobContext, seconds: float, completes: bool) -> None:
    """End by itself at about the moment of its time limit."""
    time.sleep(seconds)
    if completes:
        with context.complete():
            _write_report(context)


@job("hang.passes_over_errors", takes_context=True)
def passes_over_errors(context: JobContext, gate: str) -> None:
    with _telling(gate, context):
        while True:
            try:  # noqa: SIM105
                time.sleep(LONG)
            except Exception:  # noqa: BLE001
                pass


@job("hang.passes_over_all", takes_context=True)
def passes_over_all(context: JobContext, gate: str) -> None:
    """No interrupt ends it."""
    Gate(gate).say(f"started-{context.job_id}")
    while True:
        try:
            time.sleep(LONG)
        except:  # noqa: E722
            Gate(gate).say(f"passed-over-{context.job_id}")


@job("hang.cleans_up", takes_context=True)
def cleans_up(context: JobContext, gate: str, seconds: float) -> None:
    with _telling(gate, context):
        try:
            time.sleep(LONG)
        finally:
            time.sleep(seconds)


@job("hang.in_a_statement", takes_context=True)
def in_a_statement(context: JobContext, gate: str) -> None:
    """Wait in the driver's C code, the interpreter's lock released."""
    with _telling(gate, context), connection.cursor() as cursor:
        cursor.execute(_ENDLESS[connection.vendor])


@job("hang.holds_the_gil", takes_context=True)
def holds_the_gil(context: JobContext, gate: str) -> None:
    """Wait in C code with the interpreter's lock held: no other thread of the process runs."""
    Gate(gate).say(f"pid-{os.getpid()}")
    with _telling(gate, context):
        ctypes.PyDLL(None).sleep(LONG)


@job("hang.starts_a_program", takes_context=True)
def starts_a_program(context: JobContext, gate: str, then: str = "passes_over_all") -> None:
    program = subprocess.Popen(["sleep", "1000"])
    Gate(gate).say(f"program-{program.pid}")
    {"passes_over_all": passes_over_all, "holds_the_gil": holds_the_gil, "sleep": sleep}[then](
        context, gate
    )


@job("hang.slow_commit", takes_context=True)
def slow_commit(context: JobContext, gate: str, after: bool) -> None:
    """Be told to end while the answer to complete()'s COMMIT is on its way."""
    wrapper: Any = connections[context.using]
    interrupts = context._completion.interrupts

    def commit() -> None:
        if after:
            type(wrapper)._commit(wrapper)
        wait_until(lambda: interrupts._pending, timeout=30)
        Gate(gate).say("told")
        if not after:
            type(wrapper)._commit(wrapper)

    wrapper._commit = commit
    with context.complete():
        _write_report(context)
    Gate(gate).say("went on")


@job("hang.after_completing", takes_context=True)
def after_completing(context: JobContext, gate: str) -> None:
    with context.complete():
        _write_report(context)
    passes_over_all(context, gate)


@job("hang.remaining", takes_context=True)
def remaining(context: JobContext) -> list[float | None]:
    return _limit(context)


@job("hang.remaining_of_50", takes_context=True, timeout=50)
def remaining_of_50(context: JobContext) -> list[float | None]:
    return _limit(context)


def _limit(context: JobContext) -> list[float | None]:
    """Return what is left by the context's clock, and by this host's."""
    if context.deadline is None:
        return [context.remaining(), None]
    return [context.remaining(), context.deadline.timestamp() - time.time()]


@contextmanager
def _telling(gate: str, context: JobContext):
    """Say when it starts, and with which exception on its way it ends."""
    Gate(gate).say(f"started-{context.job_id}")
    try:
        yield
    finally:
        kind, _, _ = sys.exc_info()
        Gate(gate).say(f"{kind.__name__ if kind else 'nothing'}-{context.job_id}")


def _write_report(context: JobContext) -> None:
    GeneratedReport.objects.create(
        idempotency_key=f"{context.idempotency_key[:32]}-{context.claims}",
        tenant_id=f"job-{context.job_id}",
        report_month="2042-01",
        result_json={},
    )
