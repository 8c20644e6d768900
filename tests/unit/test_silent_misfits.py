"""Whatever a project's own types raise about a value, no value gets into the error."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any

import pytest

from django_leasequeue import EnqueueError
from django_leasequeue.core.request import build_request
from django_leasequeue.declaration import Declaration
from django_leasequeue.exceptions import RejectedJob

SECRET = "4111-1111"


class Colour(Enum):
    RED = "red"

    @classmethod
    def _missing_(cls, value: object) -> None:
        raise TypeError(f"no colour: {value}")


@dataclass
class Card:
    number: str

    def __post_init__(self) -> None:
        raise KeyError(self.number)


@dataclass
class Painted:
    colour: Colour


def declared(kind: Any) -> Declaration:
    def pay(what):
        pass

    pay.__annotations__["what"] = kind
    return Declaration(handler=pay, name="pay")


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (Card, {"number": SECRET}),
        (list[Card], [{"number": SECRET}]),
        (Painted, {"colour": SECRET}),
    ],
)
def test_an_error_of_a_model(kind, value):
    with pytest.raises(EnqueueError) as refused:
        build_request(declared(kind), {"what": value})
    assert SECRET not in str(refused.value)
    with pytest.raises(RejectedJob) as rejected:
        declared(kind).check_payload({"what": value})
    assert SECRET not in str(rejected.value)


def test_a_pydantic_validator():
    pydantic = pytest.importorskip("pydantic")

    def check(value: str) -> str:
        raise TypeError(f"bad number {value}")

    model = pydantic.create_model(
        "Paid",
        number=(str, ...),
        __validators__={"check": pydantic.field_validator("number")(check)},
    )
    with pytest.raises(RejectedJob) as rejected:
        declared(model).check_payload({"what": {"number": SECRET}})
    assert SECRET not in str(rejected.value)
