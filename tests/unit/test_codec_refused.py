"""Values that some server would refuse or change are refused by all, and never shown."""

from __future__ import annotations

import datetime as dt
import decimal
import enum
import math
import uuid

import pytest

from django_leasequeue.codec import encode

SECRET = "hunter2"
LIMIT = 10_000


def refused(value: object, kind: type[Exception]) -> str:
    with pytest.raises(kind) as caught:
        encode(value, what="payload", limit=LIMIT)
    text = str(caught.value)
    assert SECRET not in text
    assert text.startswith("payload")
    return text


class Plain(enum.Enum):
    SECRET = "hunter2"


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_json_has_no_such_numbers(number):
    assert "payload[entry 0][1]" in refused({"a": [SECRET, number]}, ValueError)


@pytest.mark.parametrize("number", [2**63, -(2**63) - 1, 2**70, 10**400])
def test_integers_past_64_bit(number):
    text = refused({"n": number}, ValueError)
    assert "64 bit" in text
    assert str(number)[:12] not in text


@pytest.mark.parametrize("text", [f"{SECRET}\0", f"\0{SECRET}", f"{SECRET}\ud800", "\udfff"])
def test_text_that_postgresql_refuses(text):
    refused({"t": text}, ValueError)
    refused({text: 1}, ValueError)
    refused([{"deep": [text]}], ValueError)


@pytest.mark.parametrize("wrong", [object(), math.nan, 2**70, "\0", {SECRET: object()}, {1: 1}])
def test_keys_are_data_and_are_not_told(wrong):
    """A key may be an address or a name: places tell its position."""
    for value in ({SECRET: wrong}, {"a": {SECRET: [wrong]}}):
        with pytest.raises((TypeError, ValueError)) as caught:
            encode(value, what="result", limit=1000)
        assert "result[entry 0]" in str(caught.value)
        assert SECRET not in str(caught.value)


def test_names_that_are_no_data_are_told():
    with pytest.raises(ValueError, match=r"^payload\['a'\]\[entry 1\] is NaN"):
        encode({"a": {"b": 1, "a": math.nan}}, what="payload", limit=1000, names={"a"})


@pytest.mark.parametrize("key", [1, True, None, 1.5, (1, 2), b"k"])
def test_keys_are_strings(key):
    assert type(key).__name__ in refused({key: SECRET}, TypeError)


def test_keys_that_python_would_collapse():
    refused({1: "a", "1": SECRET}, TypeError)


@pytest.mark.parametrize(
    "value",
    [
        (SECRET, 1),
        {SECRET},
        frozenset({SECRET}),
        SECRET.encode(),
        bytearray(SECRET.encode()),
        decimal.Decimal("1.5"),
        dt.datetime(2042, 1, 1, tzinfo=dt.UTC),
        dt.date(2042, 1, 1),
        dt.timedelta(1),
        uuid.uuid4(),
        Plain.SECRET,
        1j,
        object(),
        range(3),
        ValueError(SECRET),
    ],
    ids=lambda value: type(value).__name__,
)
def test_types_that_json_has_not(value):
    assert type(value).__name__ in refused({"v": value}, TypeError)
    refused([value], TypeError)
    refused(value, TypeError)


def test_a_list_that_contains_itself():
    loop: list[object] = [SECRET]
    loop.append(loop)
    assert "contains itself" in refused(loop, ValueError)


def test_a_cycle_over_two_containers():
    first: dict[str, object] = {"secret": SECRET}
    first["second"] = {"back": [first]}
    assert "contains itself" in refused(first, ValueError)


def test_the_same_object_twice_is_no_cycle():
    shared = ["x"]
    assert encode({"a": shared, "b": shared}, what="payload", limit=LIMIT)


@pytest.mark.parametrize("depth", [32, 101, 5_000, 100_000])
@pytest.mark.parametrize("innermost", [[SECRET], {}])
def test_nesting_that_a_server_refuses(innermost, depth):
    """MariaDB stops at 31 levels, MySQL at 100, Python's own encoder at about a thousand."""
    value: object = innermost
    for _ in range(depth - 1):
        value = [value]
    assert "nested" in refused(value, ValueError)


def test_a_long_key_does_not_make_a_long_message():
    assert len(refused({"k" * 5_000: math.nan}, ValueError)) < 200


def test_the_limit_is_in_bytes():
    assert encode("é" * 10, what="payload", limit=22) == '"' + "é" * 10 + '"'
    with pytest.raises(ValueError, match="22 bytes of JSON, above the limit of 21"):
        encode("é" * 10, what="payload", limit=21)


def test_a_value_over_the_limit_is_not_shown():
    refused({"secret": SECRET, "filler": "x" * LIMIT}, ValueError)
