"""`manage.py import_orders [CSV]`: the whole file becomes orders, or none of it does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import connections, transaction

from reports.models import Order
from reports.orders_csv import InvalidOrders, read_orders

SAMPLE = Path(__file__).resolve().parents[2] / "data" / "orders.csv"
BATCH = 500


class Command(BaseCommand):
    """Imports orders; an order that is there already gets the file's values."""

    help = "Import orders from a CSV file (default: the sample that ships). Safe to repeat."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("csv", metavar="CSV", nargs="?", type=Path, default=SAMPLE)
        parser.add_argument(
            "--database", default="default", choices=tuple(connections), help="database alias"
        )

    def handle(self, *args: Any, csv: Path, database: str, **options: Any) -> None:
        try:
            orders = read_orders(csv)
        except OSError as error:
            raise CommandError(f"Cannot read {csv}: {error.strerror}.") from None
        except InvalidOrders as error:
            raise CommandError(f"Nothing was imported from {csv}:\n{error}") from None
        added = save_orders(orders, database)
        self.stdout.write(f"{added} orders added, {len(orders) - added} were there already.")


def save_orders(orders: list[Order], using: str = "default") -> int:
    """Insert the orders in one transaction and return how many were new.

    An order of the same tenant and number is overwritten with the new values.
    """
    table = Order.objects.using(using)
    # MySQL takes every unique key as the conflict's target and refuses to have one named.
    named = connections[using].features.supports_update_conflicts_with_target
    with transaction.atomic(using=using):
        before = table.count()
        table.bulk_create(
            orders,
            batch_size=BATCH,
            update_conflicts=True,
            update_fields=["product", "quantity", "unit_price", "ordered_at"],
            unique_fields=["tenant_id", "order_number"] if named else None,
        )
        return table.count() - before
