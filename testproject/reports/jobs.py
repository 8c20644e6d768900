"""The job type `report.generate`: a tenant's orders of one month become one stored report."""

from __future__ import annotations

import random
from typing import Any

from django_leasequeue import JobContext, Reject, job
from reports.aggregation import monthly_report
from reports.fixtures import apply_fixtures
from reports.models import GeneratedReport
from reports.payloads import is_month, is_tenant

MAX_BACKOFF = 300


def report_backoff(exception: BaseException, context: JobContext) -> int:
    """Return min(300, 2 ** attempt + 0…3) seconds; the exponent stops growing at 8."""
    delay: int = 2 ** min(context.attempt, 8)
    return min(MAX_BACKOFF, delay + random.randint(0, 3))


@job("report.generate", queue="reports", backoff=report_backoff, takes_context=True)
def generate_report(
    context: JobContext, tenant_id: Any = None, report_month: Any = None, **extra: Any
) -> None:
    """Make one report and finish the job in the transaction that stores it.

    The payload is checked again here, because any program with access to the table may enqueue;
    values it does not know are ignored. Raises Reject for a payload that can never be a report.
    """
    if not (is_tenant(tenant_id) and is_month(report_month)):
        raise Reject("Malformed job payload")
    apply_fixtures(context.attempt, extra)
    # The slow part, before complete(): its transaction holds the job's row.
    result = monthly_report(tenant_id, report_month, context.using)
    with context.complete(result):
        GeneratedReport.objects.using(context.using).get_or_create(
            idempotency_key=context.idempotency_key,
            defaults={
                "tenant_id": tenant_id,
                "report_month": report_month,
                "result_json": result,
            },
        )
