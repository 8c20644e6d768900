"""Handlers whose course a test decides; their business rows are reports."""

from __future__ import annotations

import builtins
import os
import signal
import time

from django.db import connection
from django.utils import translation

from django_leasequeue import Fixed, JobContext, job
from reports.models import GeneratedReport
from tests.process.gate import Gate
from tests.process.handlers import (  # noqa: F401  (registered so)
    completing,
    coroutines,
    dying,
    hanging,
    outages,
    resources,
    saying,
    secretive,
    steps,
)


@job("proc.note")
def note(text: str = "") -> dict[str, int]:
    return {"length": len(text)}


@job("proc.fail_for_weeks", backoff=Fixed(40 * 86_400))
def fail_for_weeks() -> None:
    raise ValueError("weeks")


@job("proc.language")
def language() -> str | None:
    return translation.get_language()


@job("proc.report", takes_context=True)
def report(context: JobContext) -> None:
    """Read before completing, so that the project's own connection is in use."""
    GeneratedReport.objects.filter(idempotency_key=context.idempotency_key).exists()
    with context.complete():
        _write_report(context)


@job("proc.wait", takes_context=True)
def wait(context: JobContext, gate: str, first_run: str = "complete") -> None:
    """Wait for the gate's "go", then complete; the first run may raise instead."""
    _pass(Gate(gate), context)
    if context.claims == 1 and first_run == "raise":
        raise RuntimeError(gate)
    with context.complete():
        _write_report(context)


def wait_atomic(context: JobContext, gate: str) -> None:
    """Write the business row first and wait with it uncommitted."""
    _write_report(context)
    _pass(Gate(gate), context)


if connection.vendor != "sqlite":  # where an atomic handler must have a limit below its lease
    job("proc.wait_atomic", takes_context=True, atomic=True)(wait_atomic)


@job("proc.fail", backoff=Fixed(0), failed=lambda context, error: _write_report(context))
def fail(secret: str = "") -> None:
    raise ValueError(f"the message quotes {secret}")


@job("proc.quote_sql")
def quote_sql(secret: str) -> None:
    """Raise an error of the server that quotes a value."""
    for _ in range(2):
        GeneratedReport.objects.create(
            idempotency_key=secret, tenant_id=secret, report_month="2042-01", result_json={}
        )


@job("proc.exit")
def leave(name: str) -> None:
    raise getattr(builtins, name)


@job("proc.kill")
def kill() -> None:
    """Die as the out-of-memory killer would have it."""
    os.kill(os.getpid(), signal.SIGKILL)


@job("proc.kill_when_told", takes_context=True)
def kill_when_told(context: JobContext, gate: str) -> None:
    """Do that once the test has seen what it waits for: "go-1" for the first claim."""
    while not Gate(gate).said(f"go-{context.claims}"):
        time.sleep(0.02)
    kill()


def _pass(gate: Gate, context: JobContext) -> None:
    gate.say(f"started-{context.claims}")
    gate.say("started")
    while not gate.said("go"):
        if context.stopping:
            gate.say("stopping")
        time.sleep(0.02)


def _write_report(context: JobContext) -> None:
    # One row per claim: if a stale claim's effect were kept, there would be two.
    GeneratedReport.objects.create(
        idempotency_key=f"{context.idempotency_key[:32]}-{context.claims}",
        tenant_id=f"job-{context.job_id}",
        report_month="2042-01",
        result_json={"claim": context.claims},
    )
