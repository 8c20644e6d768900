"""Payloads typed by the handler's annotations: built, checked, and told of without values."""

from __future__ import annotations

import json
from datetime import date, datetime
from decimal import Decimal
from uuid import UUID

import pytest

from django_leasequeue import EnqueueError, job
from django_leasequeue.building import as_json, build
from django_leasequeue.core.request import build_request
from django_leasequeue.exceptions import RejectedJob
from django_leasequeue.misfits import Misfit
from django_leasequeue.registry import registry
from tests.unit import payload_models as models
from tests.unit.payload_models import Cents, Everything, Line, Order, Size

EVERYTHING = {
    "text": "t",
    "whole": 1,
    "number": 2,
    "flag": True,
    "nothing": None,
    "items": [1, 2],
    "named": {"x": {"article": "a", "price": 5}},
    "maybe": None,
    "either": "e",
    "word": 1,
    "moment": "2042-01-02T03:04:05+00:00",
    "day": "2042-01-02",
    "ident": "12345678-1234-5678-1234-567812345678",
    "amount": "1.50",
    "size": "l",
    "cents": 7,
    "anything": [{}],
    "strange": "not checked",
}


@pytest.fixture(autouse=True)
def _registry():
    before = set(registry)
    yield
    for kind in set(registry) - before:
        registry.remove(kind.name)


@pytest.fixture
def declared():
    def declare(handler, **policy):
        return job("unit.typed", **policy)(handler)

    return declare


def run(kind, payload, version=1):
    """Return what the handler gets of a stored payload."""
    return kind.begin()(**kind.accept(json.loads(json.dumps(payload)), version).arguments)


def test_every_type_that_is_known():
    built = build(Everything, EVERYTHING)
    assert built.named == {"x": Line("a", Cents(5))}
    assert built.moment == datetime.fromisoformat("2042-01-02T03:04:05+00:00")
    assert (built.day, built.amount) == (date(2042, 1, 2), Decimal("1.50"))
    assert (built.ident, built.size) == (UUID(EVERYTHING["ident"]), Size.LARGE)
    assert (built.anything, built.strange, built.counted) == ([{}], "not checked", 3)
    assert as_json(built) == EVERYTHING


@pytest.mark.parametrize(
    ("name", "wrong", "says"),
    [
        ("text", 5, "text must be str"),
        ("whole", "5", "whole must be int"),
        ("whole", True, "whole must be int"),
        ("whole", 1.0, "whole must be int"),
        ("number", "2", "number must be float"),
        ("number", True, "number must be float"),
        ("flag", 1, "flag must be bool"),
        ("nothing", 0, "nothing must be null"),
        ("items", {}, "items must be a list"),
        ("items", [1, "hunter2"], r"items\[1\] must be int"),
        ("named", [], "named must be an object"),
        ("named", {"x": {"article": "a"}}, r"named\[entry 0\]\.price is missing"),
        ("maybe", {"article": "a", "price": "hunter2"}, r"maybe\.price must be int"),
        ("either", [], "either must be int or str"),
        ("word", True, "word must be one of 'a', 1"),
        ("moment", "hunter2", "moment must be a text for datetime"),
        ("moment", 5, "moment must be a text for datetime"),
        ("day", "2042-13-01", "day must be a text for date"),
        ("ident", "hunter2", "ident must be a text for UUID"),
        ("amount", "hunter2", "amount must be a text for Decimal"),
        ("amount", 1.5, "amount must be a text for Decimal"),
        ("size", "hunter2", "size must be a text for Size"),
        ("cents", "hunter2", "cents must be int"),
        ("counted", 4, r"1 field is unknown; known: .*"),
    ],
)
def test_a_value_of_another_type(name, wrong, says):
    with pytest.raises(Misfit, match=f"^{says}$") as caught:
        build(Everything, {**EVERYTHING, name: wrong})
    assert "hunter2" not in str(caught.value)


def test_all_problems_are_told_at_once():
    with pytest.raises(Misfit, match=r"^lines\[0\]\.price must be int; note must be str$"):
        build(Order, {"order_id": 1, "lines": [{"article": "a", "price": "x"}], "note": [5]})
    says = r"^order_id is missing; 1 field is unknown; known: order_id, lines, note$"
    with pytest.raises(Misfit, match=says):
        build(Order, {"a": 1})
    with pytest.raises(Misfit, match=r"\[9\] must be int; …$"):
        build(list[int], ["x"] * 1000)


def test_a_dataclass_is_the_whole_payload(declared):
    kind = declared(models.takes_order)
    order = Order(7, [Line("a", Cents(5))])
    stored = {"order_id": 7, "lines": [{"article": "a", "price": 5}], "note": None}
    for args, kwargs in [((order,), {}), ((), {"payload": order}), ((), stored)]:
        payload = kind.payload_from(args, kwargs)
        assert json.loads(build_request(kind, payload).payload) == stored
    assert run(kind, stored) == order
    assert run(kind, {"order_id": 7}) == Order(7)


@pytest.mark.parametrize("handler", [models.takes_context, models.Handles])
def test_with_a_context_and_in_a_class(declared, handler):
    kind = declared(handler, takes_context=handler is models.takes_context)
    assert kind.accept({"order_id": 7}, 1).arguments == {"payload": Order(7)}


@pytest.mark.parametrize("payload", [{}, {"order_id": "hunter2"}, {"order_id": 1, "z": 2}])
def test_what_does_not_fit_is_refused_at_enqueue_and_at_consumption(declared, payload):
    kind = declared(models.takes_order)
    with pytest.raises(EnqueueError, match=r"order_id|1 field is unknown") as caught:
        build_request("unit.typed", payload)
    with pytest.raises(RejectedJob, match=r"^Malformed job payload: unit\.typed: ") as rejected:
        kind.accept(payload, 1)
    assert "hunter2" not in str(caught.value) + str(rejected.value)


def test_what_is_no_model_at_all(declared):
    with pytest.raises(TypeError, match="payload must be Order, or its fields by name"):
        declared(models.takes_order).payload_from((5,), {})


def test_a_typed_dict_with_values_of_its_types(declared):
    kind = declared(models.takes_report)
    report = {"tenant": "acme", "month": date(2042, 1, 1)}
    for args, kwargs in [((report,), {}), ((), report)]:
        request = build_request(kind, kind.payload_from(args, kwargs))
        assert json.loads(request.payload) == {"tenant": "acme", "month": "2042-01-01"}
    assert run(kind, {"tenant": "acme", "month": "2042-01-01"}) == report
    with pytest.raises(RejectedJob, match="month is missing"):
        kind.accept({"tenant": "acme"}, 1)


def test_fields_by_name(declared):
    kind = declared(models.takes_fields)
    request = build_request(kind, kind.payload_from((), {"tenant": "a", "month": date(2042, 1, 1)}))
    assert json.loads(request.payload) == {"tenant": "a", "month": "2042-01-01"}
    assert run(kind, json.loads(request.payload)) == {"tenant": "a", "month": date(2042, 1, 1)}
    with pytest.raises(EnqueueError, match="copies must be int"):
        build_request(kind, {"tenant": "a", "month": "2042-01-01", "copies": "x"})


def test_models_among_plain_parameters(declared):
    kind = declared(models.takes_parts)
    payload = kind.payload_from((Order(1), [Line("a", Cents(2))]), {"note": "not checked"})
    stored = json.loads(build_request(kind, payload).payload)
    assert stored["extra"] == [{"article": "a", "price": 2}]
    assert run(kind, stored) == (Order(1), [Line("a", Cents(2))], None, "not checked")
    with pytest.raises(EnqueueError, match=r"order must be an object; extra\[0\] must be an obj"):
        build_request(kind, {"order": 5, "extra": [5]})


def test_an_unknown_annotation_is_no_error(declared):
    kind = declared(models.takes_unknown)
    payload = {"thing": 5, "payload": {"thing": 5}}
    assert run(kind, payload) == (5, models.Unknown(5))
    assert run(job("unit.plain")(models.takes_plain), {"payload": 5}) == 5


def test_plain_values_still_have_to_be_json(declared):
    with pytest.raises(EnqueueError, match="convert it first"):
        build_request(declared(models.takes_parts), {"order": Order(1), "extra": [], "note": 1j})


def test_a_check_of_the_dataclass_itself(declared):
    with pytest.raises(EnqueueError, match=r"Positive was refused: ValueError$"):
        build_request(declared(models.takes_positive), {"number": -4})


def test_an_upcast_comes_before_the_check(declared):
    kind = declared(
        models.takes_order, version=2, upcast=lambda payload, _: {"order_id": payload["id"]}
    )
    assert run(kind, {"id": 7}, version=1) == Order(7)


def test_a_key_function_gets_what_the_handler_gets(declared):
    kind = declared(models.takes_order, key=lambda payload: f"order:{payload.order_id}")
    other = build_request("unit.no_declaration", key="order:7").idempotency_key
    assert build_request(kind, {"order_id": 7}).idempotency_key == other
