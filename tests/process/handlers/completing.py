"""Handlers whose transaction takes its time."""

from __future__ import annotations

import time

from django_leasequeue import JobContext, job
from reports.models import GeneratedReport


@job("proc.complete_slowly", takes_context=True)
def complete_slowly(context: JobContext, before: float, inside: float) -> None:
    """Work for `before` seconds, then for `inside` seconds within complete()."""
    time.sleep(before)
    with context.complete():
        GeneratedReport.objects.create(
            idempotency_key=context.idempotency_key,
            tenant_id="slow",
            report_month="2042-01",
            result_json={"claim": context.claims},
        )
        time.sleep(inside)
