"""Models of payloads and handlers that take them, as a project has them in its modules."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from enum import Enum
from typing import TYPE_CHECKING, Annotated, Any, Literal, NewType, NotRequired, TypedDict, Unpack
from uuid import UUID

if TYPE_CHECKING:
    from no_such_module import Unseen  # type: ignore[import-not-found]

    from django_leasequeue import JobContext

Cents = NewType("Cents", int)


class Size(Enum):
    SMALL = "s"
    LARGE = "l"


@dataclass
class Line:
    article: str
    price: Cents


@dataclass
class Order:
    order_id: int
    lines: list[Line] = field(default_factory=list)
    note: str | None = None


@dataclass
class Everything:
    text: str
    whole: int
    number: float
    flag: bool
    nothing: None
    items: list[int]
    named: dict[str, Line]
    maybe: Line | None
    either: int | str
    word: Literal["a", 1]
    moment: datetime
    day: date
    ident: UUID
    amount: Decimal
    size: Size
    cents: Annotated[Cents, "in euros"]
    anything: Any
    strange: complex
    counted: int = field(init=False, default=3)


class Report(TypedDict):
    tenant: str
    month: date
    copies: NotRequired[int]


@dataclass
class Positive:
    number: int

    def __post_init__(self):
        if self.number <= 0:
            raise ValueError(f"the message quotes {self.number}")


@dataclass
class Unknown:
    thing: Unseen


def takes_order(payload: Order):
    return payload


def takes_everything(payload: Everything):
    return payload


def takes_report(payload: Report):
    return payload


def takes_fields(**fields: Unpack[Report]):
    return fields


def takes_parts(order: Order, extra: list[Line], last: Line | None = None, note: int = 0):
    return order, extra, last, note


def takes_context(context: JobContext, payload: Order):
    return payload


def takes_unknown(thing: Unseen, payload: Unknown):
    return thing, payload


def takes_plain(payload: dict[str, int]):
    return payload


def takes_positive(payload: Positive):
    return payload


class Handles:
    def handle(self, payload: Order):
        return payload
