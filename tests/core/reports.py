"""A business row for handlers to write: the report of one job."""

from __future__ import annotations

from typing import Any

from reports.models import GeneratedReport


def make_report(key: str = "k", **values: Any) -> GeneratedReport:
    """Insert a report on the calling thread's default connection."""
    values = {"tenant_id": "acme", "report_month": "2042-01", "result_json": {}, **values}
    return GeneratedReport.objects.create(idempotency_key=key, **values)


def reports() -> list[str]:
    """Return the keys of all reports there are."""
    keys = GeneratedReport.objects.order_by("idempotency_key")
    return list(keys.values_list("idempotency_key", flat=True))
