"""Handlers that take effects and tell of their progress on the way."""

from __future__ import annotations

import os
import signal
import threading

from django_leasequeue import Fixed, JobContext, job
from reports.models import GeneratedReport
from tests.process.gate import Gate


@job("proc.effects", takes_context=True, backoff=Fixed(0))
def effects(context: JobContext) -> list[bool]:
    """Die inside the block at the first run, after it at the second; complete at the third."""
    with context.effect("charge") as first:
        if first:
            _charge(context)
        if context.claims == 1:
            os.kill(os.getpid(), signal.SIGKILL)
    if context.claims == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    return [first]


def _charge(context: JobContext) -> None:
    GeneratedReport.objects.create(
        idempotency_key=f"{context.idempotency_key[:32]}-{context.claims}",
        tenant_id=f"job-{context.job_id}",
        report_month="2042-01",
        result_json={"claim": context.claims},
    )


@job("proc.progress", takes_context=True)
def progress(context: JobContext, gate: str) -> None:
    """Tell of the first half from this thread, then of the rest from another one."""
    door = Gate(gate)
    for percent in range(51):
        context.progress(percent / 100, f"page {percent}")
    door.wait("go")
    other = threading.Thread(target=context.progress, args=(None, "tidying up"))
    other.start()
    other.join()
    door.wait("end")
