"""Reads orders from CSV: a file is either valid from the first line to the last, or refused."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

from reports.models import Order
from reports.payloads import TENANT
from reports.sample import HEADER

#: How many problems of one file are told at once.
MAX_PROBLEMS = 10

#: Column: what its text must match, and how to say so.
RULES = {
    "tenant_id": (TENANT, "must be 1 to 100 ASCII letters, digits, _ or -"),
    "order_number": (re.compile(r"[A-Za-z0-9_-]{1,40}"), "must be 1 to 40 letters, digits, _ or -"),
    "product": (re.compile(r"(?=.*\S)[^\x00-\x1f\x7f]{1,100}"), "must be 1 to 100 characters"),
    "quantity": (re.compile(r"[1-9][0-9]{0,5}"), "must be a whole number from 1 to 999999"),
    "unit_price": (re.compile(r"[0-9]{1,8}\.[0-9]{2}"), "must be a price like 12.50"),
    "ordered_at": (
        re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]{8,15}(Z|[+-][0-9]{2}:[0-9]{2})"),
        "must be a time with its offset, like 2042-01-31T18:00:00+01:00",
    ),
}


class InvalidOrders(ValueError):
    """The file cannot be imported; the message names each line and what is wrong with it."""


def read_orders(path: Path) -> list[Order]:
    """Return the orders of a UTF-8 CSV file, unsaved. Raises OSError and InvalidOrders."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        try:
            return parse_orders(file)
        except UnicodeDecodeError:
            raise InvalidOrders("the file is not UTF-8 text") from None


def parse_orders(lines: Iterable[str]) -> list[Order]:
    """Return the orders in `lines`, of which the first is the header. Raises InvalidOrders."""
    orders: list[Order] = []
    problems: list[str] = []
    seen: dict[tuple[str, str], int] = {}
    for line, row in _rows(lines):
        found = list(_problems(row))
        order = None if found else _order(row)
        if order is None:
            found = found or [f"ordered_at {RULES['ordered_at'][1]}"]
        else:
            first = seen.setdefault((order.tenant_id, order.order_number), line)
            if first != line:
                found = [f"{order.tenant_id} {order.order_number} is already on line {first}"]
            orders.append(order)
        problems += [f"line {line}: {problem}" for problem in found]
    if problems:
        raise InvalidOrders(_summary(problems))
    return orders


def _rows(lines: Iterable[str]) -> Iterator[tuple[int, list[str]]]:
    reader = csv.reader(lines, strict=True)
    try:
        header = next(reader, [])
        if header != list(HEADER):
            raise InvalidOrders(f"line 1: the columns must be {','.join(HEADER)}")
        for row in reader:
            if row:
                yield reader.line_num, row
    except csv.Error as error:
        raise InvalidOrders(f"line {reader.line_num}: {error}") from None


def _problems(row: list[str]) -> Iterator[str]:
    if len(row) != len(HEADER):
        yield f"has {len(row)} values instead of {len(HEADER)}"
        return
    for name, text in zip(HEADER, row, strict=True):
        pattern, rule = RULES[name]
        if not pattern.fullmatch(text):
            yield f"{name} {rule}, not {text[:50]!r}"


def _order(row: list[str]) -> Order | None:
    tenant_id, order_number, product, quantity, unit_price, ordered_at = row
    try:
        moment = datetime.fromisoformat(ordered_at).astimezone(UTC)
    except (ValueError, OverflowError):
        return None
    return Order(
        tenant_id=tenant_id,
        order_number=order_number,
        product=product,
        quantity=int(quantity),
        unit_price=Decimal(unit_price),
        ordered_at=moment,
    )


def _summary(problems: list[str]) -> str:
    shown = problems[:MAX_PROBLEMS]
    if more := len(problems) - len(shown):
        shown.append(f"and {more} more")
    return "\n".join(shown)
