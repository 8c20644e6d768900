"""Payloads that are pydantic models, where pydantic is installed."""

from __future__ import annotations

import json
from datetime import date
from typing import TYPE_CHECKING

import pytest

from django_leasequeue import EnqueueError, job
from django_leasequeue.core.request import build_request
from django_leasequeue.exceptions import RejectedJob
from django_leasequeue.registry import registry

if TYPE_CHECKING:
    import pydantic
    import pydantic.dataclasses
else:
    pydantic = pytest.importorskip("pydantic", reason="pydantic is an extra")
    pytest.importorskip("pydantic.dataclasses")


class Report(pydantic.BaseModel):
    tenant: str = pydantic.Field(alias="tenant_id")
    month: date
    copies: int = 1

    @pydantic.field_validator("tenant")
    @classmethod
    def known(cls, value):
        if value != "acme":
            raise ValueError(f"the message quotes {value}")
        return value


@pydantic.dataclasses.dataclass
class Line:
    price: int


def takes_report(payload: Report):
    return payload


def takes_parts(report: Report, lines: list[Line]):
    return report, lines


STORED = {"tenant_id": "acme", "month": "2042-01-01", "copies": 1}


@pytest.fixture
def kind():
    yield job("unit.pydantic")(takes_report)
    registry.remove("unit.pydantic")


def test_a_model_is_the_whole_payload(kind):
    report = Report(**STORED)
    for args, kwargs in [((report,), {}), ((), STORED), ((), {"payload": report})]:
        request = build_request(kind, kind.payload_from(args, kwargs))
        assert json.loads(request.payload) == STORED
    assert kind.accept(STORED, 1).arguments == {"payload": report}


def test_what_is_stored_is_what_was_given(kind):
    assert json.loads(
        build_request(kind, {"tenant_id": "acme", "month": "2042-01-01"}).payload
    ) == {
        "tenant_id": "acme",
        "month": "2042-01-01",
    }


def test_errors_name_fields_and_no_values(kind):
    payload = {"tenant_id": "hunter2", "month": "hunter2"}
    says = r"tenant_id: value_error; month: date_from_datetime_parsing"
    with pytest.raises(EnqueueError, match=says) as caught:
        build_request(kind, payload)
    with pytest.raises(RejectedJob, match=says) as rejected:
        kind.accept(payload, 1)
    assert "hunter2" not in str(caught.value) + str(rejected.value)


class Prices(pydantic.BaseModel, extra="forbid"):
    by_name: dict[str, int]
    lines: list[Line] = []


def takes_prices(payload: Prices):
    return payload


@pytest.mark.parametrize(
    ("payload", "says"),
    [
        ({"by_name": {"alice": "x"}}, r"by_name\.\(entry\): int_parsing$"),
        ({"by_name": {}, "alice": 1}, r": \(entry\): extra_forbidden$"),
        ({"by_name": {}, "lines": [{"price": "x"}]}, r"lines\.0\.price: int_parsing$"),
    ],
)
def test_keys_that_are_no_field_are_data(payload, says):
    kind = job("unit.pydantic")(takes_prices)
    registry.remove("unit.pydantic")
    with pytest.raises(RejectedJob, match=says) as caught:
        kind.accept(payload, 1)
    assert "alice" not in str(caught.value)


def test_models_among_other_parameters(kind):
    parts = job("unit.pydantic")
    registry.remove("unit.pydantic")
    parts = parts(takes_parts)
    payload = {"report": STORED, "lines": [{"price": 2}]}
    assert parts.accept(payload, 1).arguments == {"report": Report(**STORED), "lines": [Line(2)]}
    request = build_request(parts, {"report": Report(**STORED), "lines": [Line(2)]})
    assert json.loads(request.payload) == payload
    with pytest.raises(RejectedJob, match=r"lines\[0\]\.price: int_parsing"):
        parts.accept({"report": STORED, "lines": [{"price": "x"}]}, 1)
