"""Makes the sample orders that ship as data/orders.csv; the same text on every machine.

    python -m reports.sample > reports/data/orders.csv

Each shop writes its times with its own offset from UTC, as real exports do: some orders belong to
another month in UTC than on the shop's wall.
"""

from __future__ import annotations

import csv
import io
import random
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta, timezone

Draw = Callable[[], float]

HEADER = ("tenant_id", "order_number", "product", "quantity", "unit_price", "ordered_at")
FIRST_DAY = datetime(2041, 11, 1, tzinfo=UTC)
DAYS = 30 + 31 + 31 + 28

#: Tenant: orders on an ordinary day, hours from UTC.
SHOPS = {"acme": (11, 0), "globex": (7, -5), "initech": (4, 1), "umbrella": (3, 9)}

#: Product: price in cents, weight in the draw.
PRODUCTS = {
    "Notebook A5": (449, 18),
    "Ballpoint pens, 10 pack": (695, 16),
    "Copy paper, 500 sheets": (529, 15),
    "Desk lamp": (3990, 6),
    "Whiteboard 90 x 60": (5495, 3),
    "Ergonomic chair": (28900, 2),
    "Monitor arm": (8950, 3),
    "USB-C dock": (12900, 4),
    "Mechanical keyboard": (9900, 5),
    "Wireless mouse": (2995, 8),
    "Headset": (7450, 5),
    "Café filter, 100 pack": (379, 9),
    "Coffee beans 1 kg": (1690, 12),
}


def rows() -> Iterator[tuple[str, ...]]:
    """Yield the sample orders as CSV fields, tenant by tenant in the order of time."""
    for tenant, (per_day, hours) in SHOPS.items():
        # Only random() is the same in every version of Python: no other method is used.
        draw = random.Random(f"orders of {tenant}").random
        moments = _moments(draw, per_day, timezone(timedelta(hours=hours)))
        for number, moment in enumerate(moments, start=1):
            product, cents = _product(draw)
            quantity = 1 + int(draw() ** 3 * 12)
            when = moment.isoformat().replace("+00:00", "Z")
            price = f"{cents // 100}.{cents % 100:02}"
            yield tenant, f"{tenant[:2].upper()}-{number:05}", product, str(quantity), price, when


def _moments(draw: Draw, per_day: int, zone: timezone) -> list[datetime]:
    """Return when the shop sold something: in its day hours, less at weekends, more in December."""
    moments = []
    for number in range(DAYS):
        day = FIRST_DAY.replace(tzinfo=zone) + timedelta(days=number)
        busy = per_day * (0.45 if day.weekday() >= 5 else 1) * (1.5 if day.month == 12 else 1)
        orders = int(busy * (0.6 + 0.8 * draw()) + 0.5)
        moments += [day + timedelta(seconds=int((7 + 15 * draw()) * 3600)) for _ in range(orders)]
    # The two sides of a month's border.
    turn = datetime(2042, 1, 1, tzinfo=UTC).astimezone(zone)
    return sorted([*moments, turn - timedelta(seconds=1), turn])


def _product(draw: Draw) -> tuple[str, int]:
    point = draw() * sum(weight for _, weight in PRODUCTS.values())
    for product, (cents, weight) in PRODUCTS.items():
        point -= weight
        if point < 0:
            return product, cents
    return product, cents


def as_csv() -> str:
    """Return the whole file."""
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(HEADER)
    writer.writerows(rows())
    return text.getvalue()


if __name__ == "__main__":
    sys.stdout.reconfigure(encoding="utf-8", newline="")  # type: ignore[union-attr]
    sys.stdout.write(as_csv())
