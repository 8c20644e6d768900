"""What a report may be asked for: the one place that knows the patterns of tenant and month."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

TENANT = re.compile(r"[A-Za-z0-9_-]{1,100}")
MONTH = re.compile(r"[0-9]{4}-(0[1-9]|1[0-2])")


def is_tenant(value: object) -> bool:
    """Tell whether `value` is a tenant's id: 1 to 100 ASCII letters, digits, `_` or `-`."""
    return isinstance(value, str) and TENANT.fullmatch(value) is not None


def is_month(value: object) -> bool:
    """Tell whether `value` is a month as `YYYY-MM` in ASCII digits; there is no year 0000."""
    return (
        isinstance(value, str)
        and MONTH.fullmatch(value) is not None
        and not value.startswith("0000")
    )


def month_bounds(month: str) -> tuple[datetime, datetime]:
    """Return the first instant of a month and of the next one, in UTC.

    A month is a UTC month whatever TIME_ZONE says, so that a report does not depend on the
    machine that makes it. `month` must satisfy `is_month`.
    """
    first = datetime(int(month[:4]), int(month[5:]), 1, tzinfo=UTC)
    if first.year == 9999 and first.month == 12:
        return first, datetime.max.replace(tzinfo=UTC)
    return first, (first + timedelta(days=32)).replace(day=1)


def report_key(tenant: str, month: str) -> str:
    """Return the key that makes two requests for one report the same job."""
    return f"monthly-report:{tenant}:{month}"
