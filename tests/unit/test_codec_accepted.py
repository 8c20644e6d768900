"""What JSON has goes through unchanged in value; what comes back is a JSON object or rejected."""

from __future__ import annotations

import enum
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from django_leasequeue.codec import decode_payload, digest_key, encode
from django_leasequeue.exceptions import RejectedJob

LIMIT = 1_000_000
texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))
scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False, allow_infinity=False),
    texts,
)
documents = st.dictionaries(
    texts,
    st.recursive(
        scalars,
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
        max_leaves=12,
    ),
    max_size=5,
)


class Word(enum.StrEnum):
    ONE = "one"


@given(document=documents)
def test_round_trip(document):
    text = encode(document, what="payload", limit=LIMIT)
    assert decode_payload(text) == document
    assert decode_payload(text.encode()) == document


@pytest.mark.parametrize(
    "value", [2**63 - 1, -(2**63), 1e2, -0.0, 1e-7, 5e-324, "", "😀 \U0010ffff\x01", [], {}, None]
)
def test_edges(value):
    assert json.loads(encode({"v": value}, what="payload", limit=LIMIT))["v"] == value


@pytest.mark.parametrize("number", [1e16, 2.0**60, 1e22, 1.7976931348623157e308, -1e300])
def test_large_floats_have_all_their_digits(number):
    """PostgreSQL would take the shortest ones for an integer, and that is another number."""
    text = encode({"n": number}, what="payload", limit=LIMIT)
    assert "e" not in text
    again = decode_payload(text)
    assert again == {"n": number}
    assert encode(again, what="payload", limit=LIMIT) == text


def test_text_is_stored_as_it_reads():
    assert encode({"é": "😀"}, what="payload", limit=LIMIT) == '{"é":"😀"}'


def test_subclasses_of_json_types_are_stored_as_those():
    assert encode({"w": Word.ONE}, what="payload", limit=LIMIT) == '{"w":"one"}'


def test_the_deepest_document_that_every_server_takes():
    value: object = 1
    for _ in range(31):
        value = [value]
    assert encode(value, what="payload", limit=LIMIT).count("[") == 31


@pytest.mark.parametrize(
    "text", ["", "{", "nonsense", b"\xff", "[" * 100_000, f'{{"n":{"9" * 400}}}', "9" * 5000]
)
def test_what_is_no_json(text):
    with pytest.raises(RejectedJob, match=r"^Malformed job payload: not JSON$"):
        decode_payload(text)


@pytest.mark.parametrize("text", ["[]", "null", '"hunter2"', "1", "true"])
def test_what_is_no_object(text):
    with pytest.raises(RejectedJob, match=r"^Malformed job payload: not a JSON object$"):
        decode_payload(text)


def test_a_key_is_a_digest():
    """What PHP's and MySQL's SHA-256 give for the same text."""
    assert digest_key("monthly-report:acme:2042-01") == (
        "2209010e18decfecb2a5314719571b83c97c17f8b86523a3f7610a89a9bac94f"
    )


@given(one=texts, other=texts)
def test_different_keys_are_different_digests(one, other):
    if one and other and one != other:
        assert digest_key(one) != digest_key(other)


@pytest.mark.parametrize("key", [1, None, b"k", ["k"], True])
def test_a_key_is_text(key):
    with pytest.raises(TypeError, match="must be a string"):
        digest_key(key)


@pytest.mark.parametrize("key", ["", "\ud800"])
def test_a_key_that_names_nothing(key):
    with pytest.raises(ValueError):
        digest_key(key)
