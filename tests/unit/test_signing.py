"""Signatures: what they cover, that they go by value, and that keys are shown nowhere."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.views.debug import SafeExceptionReporterFilter
from hypothesis import given
from hypothesis import strategies as st

from django_leasequeue import RejectedJob, sign, verify
from django_leasequeue.codec import decode_payload, encode
from django_leasequeue.conf import get_conf
from django_leasequeue.signing import Sealed, canonical, check_signature, key_of, signature_of
from tests.unit.test_codec_accepted import documents

NEW, OLD = "n" * 32, "o" * 32
SEALED = Sealed("report", "q", 5, "ab" * 32, 1, {"n": 1}, {})


@pytest.fixture(autouse=True)
def _keys(settings):
    settings.LEASEQUEUE = {"SIGNING_KEYS": [NEW, OLD]}


@given(document=documents)
def test_however_a_server_writes_it_down(document):
    """Case D1: sorted otherwise, escaped, spaced, numbers with other digits."""
    sent = decode_payload(encode(document, what="payload", limit=1_000_000))
    rewritten = json.dumps(turned(document), ensure_ascii=True, indent=1)
    assert canonical(decode_payload(rewritten)) == canonical(sent) == canonical(document)


def turned(value):
    """Return what another server might write: keys turned round, whole numbers as floats."""
    if isinstance(value, dict):
        return {key: turned(value[key]) for key in reversed(value)}
    if isinstance(value, list):
        return [turned(item) for item in value]
    if type(value) is int and abs(value) < 2**53:
        return float(value)
    if type(value) is float and value.is_integer():
        return int(value)
    return value


@pytest.mark.parametrize(
    "texts",
    [
        ("100", "1e2", "1E+2", "100.0", "100.00", "1000e-1"),
        ("0", "-0", "0.0", "-0.0", "0e9"),
        ("1e-7", "0.0000001", "1.0E-7"),
        ("10000000000000000000000", "1e22", "1e+22"),
        ("1180591620717411303424", "1.1805916207174113e21", "1180591620717411300000"),
        ("9223372036854775808", "9.223372036854775808e18", "9.223372036854776e18"),
        ('"\\u00e9"', '"é"'),
        ('"\\ud83d\\ude00"', '"😀"'),
    ],
)
def test_one_value_has_one_form(texts):
    assert len({canonical(json.loads(text)) for text in texts}) == 1


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("1", "true"),
        ("0", "false"),
        ("0", "null"),
        ("1", '"1"'),
        ("9223372036854775807", "9223372036854775806"),
        ("9007199254740993", "9007199254740992"),
        ("0.1", "0.10000000000000002"),
        ('"é"', '"e\\u0301"'),
        ("[]", "{}"),
        ("[1,2]", "[2,1]"),
        ('{"a":{"b":1}}', '{"a":1,"b":{}}'),
    ],
)
def test_two_values_have_two_forms(one, other):
    assert canonical(json.loads(one)) != canonical(json.loads(other))


def test_keys_are_sorted_by_code_point():
    text = canonical({"\U00010000": 1, "\uffff": 2, "b": 3, "aa": 4})
    assert list(json.loads(text)) == ["aa", "b", "\uffff", "\U00010000"]


@given(
    fields=st.tuples(st.text(), st.text(), st.integers(1, 99), st.text(), st.integers(1, 9)),
    others=st.tuples(st.text(), st.text(), st.integers(1, 99), st.text(), st.integers(1, 9)),
)
def test_no_two_jobs_share_a_signature(fields, others):
    one, other = (Sealed(*five, payload={}, context={}) for five in (fields, others))
    assert (signature_of(one) == signature_of(other)) == (one == other)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("job_type", "report2"),
        ("queue", "Q"),
        ("max_attempts", 6),
        ("idempotency_key", "ac" * 32),
        ("payload_version", 2),
        ("payload", {"n": 2}),
        ("context", {"tenant": 2}),
    ],
)
def test_what_is_covered(name, value):
    signature = signature_of(SEALED)
    assert key_of(SEALED, signature) == 0
    assert key_of(SEALED._replace(**{name: value}), signature) is None


def test_signature_for_and_is_signature_valid():
    """Seed S2: `signatureFor` and `isSignatureValid` of a job."""
    job = SimpleNamespace(**SEALED._asdict(), queue_name="q", signature="")
    assert not verify(job)
    job.signature = sign(job)
    assert len(job.signature) == 64
    assert verify(job)


def test_an_older_key_still_verifies_and_no_longer_signs(settings):
    settings.LEASEQUEUE = {"SIGNING_KEYS": [OLD]}
    signature = signature_of(SEALED)
    settings.LEASEQUEUE = {"SIGNING_KEYS": [NEW, OLD]}
    assert key_of(SEALED, signature) == 1
    check_signature(SEALED, signature)
    assert signature_of(SEALED) != signature
    settings.LEASEQUEUE = {"SIGNING_KEYS": [NEW]}
    with pytest.raises(RejectedJob, match=r"^Invalid signature$"):
        check_signature(SEALED, signature)


@pytest.mark.parametrize("signature", ["0" * 64, "é", "x", "A" * 64, "\udc80"])
def test_a_wrong_signature(signature):
    with pytest.raises(RejectedJob, match=r"^Invalid signature$"):
        check_signature(SEALED, signature)


def test_a_missing_signature():
    with pytest.raises(RejectedJob, match=r"^Missing signature$"):
        check_signature(SEALED, "")


def test_a_payload_nested_too_deep_to_be_signed():
    value: object = 1
    for _ in range(5000):
        value = [value]
    with pytest.raises(RejectedJob, match=r"^Invalid signature$"):
        check_signature(SEALED._replace(payload=value), "0" * 64)


def test_signing_is_off_by_default(settings):
    settings.LEASEQUEUE = {}
    assert signature_of(SEALED) == ""
    check_signature(SEALED, "")
    check_signature(SEALED, "whatever")
    assert key_of(SEALED, signature_of(SEALED)) is None


@pytest.mark.parametrize("keys", ["s3cret-s3cret-s3cret", ["s3cret"], [5], [None], {"s3cret": 1}])
def test_keys_that_are_none(settings, keys):
    settings.LEASEQUEUE = {"SIGNING_KEYS": keys}
    with pytest.raises(ImproperlyConfigured, match="SIGNING_KEYS") as caught:
        get_conf()
    assert "s3cret" not in str(caught.value)


def test_keys_are_shown_nowhere(settings):
    assert NEW not in repr(get_conf())
    cleansed = SafeExceptionReporterFilter().get_safe_settings()["LEASEQUEUE"]
    assert NEW not in repr(cleansed)
