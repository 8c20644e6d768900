"""Handlers for tests of frozen, killed and crowded workers."""

from __future__ import annotations

import itertools
import os
import subprocess
import time

from django.dispatch import receiver

from django_leasequeue import Fixed, JobContext, LeaseLost, job
from django_leasequeue.signals import jobs_claimed
from reports.models import GeneratedReport
from tests.process.gate import Gate


@job("outages.stuck", takes_context=True)
def stuck(context: JobContext, gate: str) -> None:
    """The first run never leaves C code, and never lets another thread run."""
    Gate(gate).say(f"started-{context.claims}")
    if context.claims == 1:
        sum(itertools.repeat(0))


@job("outages.program", takes_context=True)
def program(context: JobContext, gate: str) -> None:
    """The first run starts a program and waits for its end."""
    if context.claims == 1:
        with subprocess.Popen(["sleep", "1000"]) as started:
            Gate(gate).say("started-1")
            started.wait()


@job("outages.watched", takes_context=True)
def watched(context: JobContext, gate: str) -> None:
    """Wait for the gate's "go", then complete; say when the lease is lost meanwhile."""
    gates = Gate(gate)
    gates.say(f"started-{context.claims}")
    try:
        gates.wait("go", 60)
    except LeaseLost:
        gates.say(f"lost-{context.claims}")
        raise
    with context.complete():
        _effect(context)


@job("outages.effect", takes_context=True, max_attempts=1000, max_crashes=1000, backoff=Fixed(0))
def effect(context: JobContext) -> None:
    """Complete with one business row, whose key is another for each claim."""
    with context.complete():
        _effect(context)


def _effect(context: JobContext) -> None:
    GeneratedReport.objects.create(
        idempotency_key=f"{context.idempotency_key[:40]}-{context.claims}",
        tenant_id=f"job-{context.job_id}",
        report_month="2042-01",
        result_json={"claim": context.claims},
    )


@job("outages.charge", takes_context=True, max_attempts=1000, backoff=Fixed(0))
def charge(context: JobContext) -> None:
    """Write one business row under effect(), and go on."""
    with context.effect("charge") as first:
        if first:
            _effect(context)


@job("outages.slow", max_attempts=1, takes_context=True)
def slow(context: JobContext, seconds: float) -> None:
    time.sleep(seconds)


def _failed(context: JobContext, error: BaseException) -> None:
    raise RuntimeError("a hook that raises")


@job("outages.buried", max_attempts=1, failed=_failed)
def buried() -> None:
    raise ValueError


@receiver(jobs_claimed)
def claimed(**kwargs: object) -> None:
    if os.environ.get("PROCESS_TEST_RAISING_RECEIVER") == "1":
        raise RuntimeError("a receiver that raises")
