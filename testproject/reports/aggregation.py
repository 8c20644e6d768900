"""A tenant's month in figures, computed by the database. A month and its days are UTC."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from typing import Any

from django.db.models import Case, Count, F, QuerySet, Sum, Value, When

from reports.models import Order
from reports.payloads import month_bounds

TOP_PRODUCTS = 5

REVENUE = Sum(F("quantity") * F("unit_price"))


def monthly_report(tenant: str, month: str, using: str = "default") -> dict[str, Any]:
    """Return the report as JSON data; a month without orders is a report of zeros.

    Amounts are text with two decimals, because JSON numbers are floats to most readers.
    """
    first, after = month_bounds(month)
    orders = Order.objects.using(using).filter(
        tenant_id=tenant, ordered_at__gte=first, ordered_at__lt=after
    )
    total = orders.aggregate(orders=Count("pk"), units=Sum("quantity"), revenue=REVENUE)
    return {
        "tenant_id": tenant,
        "report_month": month,
        "state": "generated",
        "orders": total["orders"],
        "units": total["units"] or 0,
        "revenue": _money(total["revenue"]),
        "per_day": _per_day(orders, month),
        "top_products": _top_products(orders),
    }


def _per_day(orders: QuerySet[Order], month: str) -> list[dict[str, Any]]:
    first, after = month_bounds(month)
    # TruncDate follows the session's zone when USE_TZ is off: comparing instants never does.
    ends = [(day, first + timedelta(days=day)) for day in range(1, (after - first).days + 1)]
    day = Case(*(When(ordered_at__lt=end, then=Value(number)) for number, end in ends))
    days = orders.values(day=day).annotate(orders=Count("pk"), revenue=REVENUE).order_by("day")
    return [
        {
            "day": f"{month}-{row['day']:02}",
            "orders": row["orders"],
            "revenue": _money(row["revenue"]),
        }
        for row in days
    ]


def _top_products(orders: QuerySet[Order]) -> list[dict[str, Any]]:
    products = orders.values("product").annotate(units=Sum("quantity"), revenue=REVENUE)
    return [
        {"product": row["product"], "units": row["units"], "revenue": _money(row["revenue"])}
        for row in products.order_by("-revenue", "product")[:TOP_PRODUCTS]
    ]


def _money(amount: Decimal | None) -> str:
    # SQLite sums in floating point, so there the exact cents come back by rounding.
    return str((amount or Decimal()).quantize(Decimal("0.01")))
