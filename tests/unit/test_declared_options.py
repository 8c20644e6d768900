"""The options of `@job` that are about payloads: key, version, upcast, sensitive."""

from __future__ import annotations

import pytest
from django.core.exceptions import ImproperlyConfigured

from django_leasequeue import EnqueueError, job
from django_leasequeue.codec import MASK, masked
from django_leasequeue.core.lease import Claimed, Lease
from django_leasequeue.core.request import build_request
from django_leasequeue.exceptions import RejectedJob, UnknownJobType
from django_leasequeue.registry import registry


@pytest.fixture(autouse=True)
def _registry():
    before = set(registry)
    yield
    for kind in set(registry) - before:
        registry.remove(kind.name)


def plain(a, b=2):
    return a, b


async def coroutine(**payload):
    return payload


@pytest.mark.parametrize(
    ("policy", "says"),
    [
        ({"queue": ""}, "queue"),
        ({"queue": "q" * 65}, "queue"),
        ({"queue": None}, "queue"),
        ({"version": 0}, "version must be a whole number between 1 and 32767"),
        ({"version": 32_768}, "version"),
        ({"version": None}, "version"),
        ({"version": True}, "version"),
        ({"version": "2"}, "version"),
        ({"version": 2, "upcast": "up"}, "upcast"),
        ({"version": 2, "upcast": coroutine}, "upcast"),
        ({"upcast": dict}, "version must be above 1"),
        ({"key": ""}, "key"),
        ({"key": 5}, "key"),
        ({"key": "\ud800"}, "key"),
        ({"key": coroutine}, "key"),
        ({"key_until": "never"}, "key_until"),
        ({"key_until": None}, "key_until"),
        ({"sensitive": "card"}, "sensitive"),
        ({"sensitive": ["card"]}, "sensitive"),
        ({"sensitive": ("",)}, "sensitive"),
        ({"sensitive": (5,)}, "sensitive"),
        ({"max_attempts": 0}, "max_attempts"),
    ],
)
def test_an_option_out_of_bounds(policy, says):
    """Case E10's refusals, for every option that has bounds."""
    with pytest.raises(ImproperlyConfigured, match=says):
        job("unit.refused", **policy)(plain)
    assert registry.get("unit.refused") is None


def test_the_bounds_themselves_are_allowed():
    job("unit.most", version=32_767, upcast=lambda payload, version: payload)(plain)
    job("unit.least", version=1, max_attempts=1, queue="q" * 64)(plain)


def key_of(name, payload=None, **options):
    request = build_request(name, payload, **options)
    return request.keyed, request.idempotency_key, request.live_key


def digest(key):
    return key_of("unit.no_declaration", key=key)[1]


def test_a_key_made_of_the_payload():
    job("unit.key", key=lambda a, b: f"{a}:{b}")(plain)
    assert key_of("unit.key", {"a": 1}) == (True, digest("1:2"), None)
    assert key_of("unit.key", {"a": 1, "b": 3}) == (True, digest("1:3"), None)


def test_a_key_that_is_a_text():
    job("unit.key", key="nightly")(plain)
    assert key_of("unit.key", {"a": 1}) == (True, digest("nightly"), None)


def test_an_explicit_key_wins():
    kind = job("unit.key", key=lambda a, b: "declared", key_until="finished")(plain)
    keyed, _, live = key_of(kind, {"a": 1}, key="mine")
    assert (keyed, live) == (True, digest("mine"))
    assert key_of("unit.key", {"a": 1}, key="mine", key_until="forever")[1:] == (
        digest("mine"),
        None,
    )


def test_a_key_function_may_decline():
    job("unit.key", key=lambda a, b: None)(plain)
    assert key_of("unit.key", {"a": 1})[0] is False


def test_key_until_as_declared():
    job("unit.key", key=lambda a, b: "k", key_until="finished")(plain)
    assert key_of("unit.key", {"a": 1})[2] == digest("k")


@pytest.mark.parametrize(
    "key", [lambda a, b: 1 / 0, lambda a: "k", lambda a, b: 5, lambda a, b: ""]
)
def test_a_key_function_that_fails_writes_nothing(key):
    job("unit.key", key=key)(plain)
    with pytest.raises(EnqueueError) as caught:
        build_request("unit.key", {"a": "hunter2"})
    assert "hunter2" not in str(caught.value)


def add_b(payload, from_version):
    return {**payload, "b": from_version}


def test_an_older_payload_is_upcast():
    kind = job("unit.version", version=3, upcast=add_b)(plain)
    assert kind.accept({"a": 1}, 2) == ({"a": 1, "b": 2}, {"a": 1, "b": 2})
    assert kind.accept({"a": 1}, 3) == ({"a": 1}, {"a": 1})


def test_an_older_payload_without_upcast_must_fit():
    kind = job("unit.version", version=2)(plain)
    assert kind.accept({"a": 1}, 1).payload == {"a": 1}
    with pytest.raises(RejectedJob):
        kind.accept({"z": 1}, 1)


def test_a_newer_payload_is_for_another_worker():
    kind = job("unit.version", version=2, upcast=add_b)(plain)
    with pytest.raises(UnknownJobType, match="version 3: this worker knows 2"):
        kind.accept({"a": 1}, 3)


@pytest.mark.parametrize("made", [None, [1], "text"])
def test_an_upcast_that_makes_no_payload(made):
    kind = job("unit.version", version=2, upcast=lambda payload, version: made)(plain)
    with pytest.raises(RejectedJob, match="upcast returned no dict"):
        kind.accept({"a": 1}, 1)


def test_sensitive_fields_are_masked_at_any_depth():
    kind = job("unit.sensitive", sensitive=("card", "pin"))(plain)
    data = {"card": "4111", "a": [{"pin": 1, "x": 2}], "b": {"card": {"no": 3}}}
    assert kind.masked(data) == {"card": MASK, "a": [{"pin": MASK, "x": 2}], "b": {"card": MASK}}
    assert masked(data, ()) is data


def test_a_repr_shows_no_payload():
    """Case D13: what is logged or shown in an error page holds no values."""
    secret = "hunter2"
    request = build_request("unit.no_declaration", {"card": secret})
    claimed = Claimed(
        Lease(1, b""), 60, 1, "t", "q", f'{{"card": "{secret}"}}', 1, 5, 0, "", "", None, None,
        f'{{"a": "{secret}"}}', f'"{secret}"', "w", None, 1,
    )  # fmt: skip
    assert secret not in repr(request) + repr(claimed)


def test_a_handler_of_the_main_script_needs_a_name():
    """Case D3: no worker could ever import it."""

    def x():
        pass

    x.__module__ = "__main__"
    with pytest.raises(ImproperlyConfigured, match=r"main script.*jobs\.py"):
        job(x)
    assert job("unit.main")(x).name == "unit.main"


def test_a_renamed_function_keeps_its_jobs():
    """Case D3: the old name may lead to the new function for as long as jobs have it."""
    new = job("unit.new_name")(plain)
    old = job("unit.old_name")(new.handler)
    assert {kind.name for kind in registry} >= {"unit.new_name", "unit.old_name"}
    assert old.handler is new.handler
