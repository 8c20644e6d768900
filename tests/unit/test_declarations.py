"""`@job`: what can never run is refused where it is written, with a sentence that says why."""

from __future__ import annotations

import functools
import importlib
import math
import sys

import pytest
from django.core.exceptions import ImproperlyConfigured

from django_leasequeue import EnqueueError, Fixed, JobType, job
from django_leasequeue.core.request import build_request
from django_leasequeue.exceptions import RejectedJob
from django_leasequeue.registry import registry


@pytest.fixture(autouse=True)
def _registry():
    """Every job type declared by a test is forgotten."""
    before = set(registry)
    yield
    for kind in set(registry) - before:
        registry.remove(kind.name)


def plain(a, b=2, *, c=3):
    return a, b, c


def with_context(context, a):
    return a


def takes_args(*args):
    pass


def takes_positional(a, /):
    pass


def takes_rest(a, **rest):
    return a, rest


async def coroutine(a):
    return a


@functools.wraps(coroutine)
def wrapped(*args, **kwargs):
    return coroutine(*args, **kwargs)


@pytest.mark.parametrize(
    ("handler", "policy", "says"),
    [
        (takes_args, {}, r"\*args"),
        (takes_positional, {}, "positional-only"),
        (plain, {"takes_context": True}, "first parameter named 'context'"),
        (lambda: None, {"takes_context": True}, "first parameter named 'context'"),
        (coroutine, {"atomic": True}, "plain functions"),
        (wrapped, {"atomic": True}, "plain functions"),
        (plain, {"max_attempts": 0}, "max_attempts"),
        (plain, {"max_attempts": 32_768}, "max_attempts"),
        (plain, {"max_crashes": 0}, "max_crashes"),
        (plain, {"timeout": 0}, "timeout"),
        (plain, {"timeout": -1}, "timeout"),
        (plain, {"timeout": math.nan}, "timeout"),
        (plain, {"lease": 0}, "lease"),
        (plain, {"priority": 101}, "priority"),
        (plain, {"priority": -101}, "priority"),
        (plain, {"priority": "1"}, "priority"),
        (plain, {"max_attempts": "5"}, "max_attempts"),
        (plain, {"max_attempts": True}, "max_attempts"),
        (plain, {"timeout": "60"}, "timeout"),
        (plain, {"timeout": math.inf}, "timeout"),
        (plain, {"permanent": ValueError}, "permanent"),
        (plain, {"permanent": (5,)}, "permanent"),
        (plain, {"failed": "hook"}, "failed"),
        (plain, {"backoff": 5}, "backoff"),
        (plain, {"retries": 3}, "retries"),
    ],
)
def test_a_declaration_that_can_never_run(handler, policy, says):
    with pytest.raises(ImproperlyConfigured, match=says) as caught:
        job("unit.refused", **policy)(handler)
    assert handler.__qualname__ in str(caught.value)
    assert registry.get("unit.refused") is None


@pytest.mark.parametrize("name", ["n" * 256, "\0", "\ud800"])
def test_a_name_that_no_row_can_hold(name):
    with pytest.raises(ImproperlyConfigured, match="name"):
        job(name)(plain)


def test_two_handlers_of_one_name():
    job("unit.twice")(plain)
    with pytest.raises(ImproperlyConfigured, match=r"plain and .*with_context"):
        job("unit.twice")(with_context)
    assert [kind.handler for kind in registry if kind.name == "unit.twice"] == [plain]


def test_the_same_handler_again_is_a_reload():
    job("unit.again")(plain)
    latest = job("unit.again", queue="other")(plain)
    assert registry.get("unit.again") is latest


TWICE = """
from django_leasequeue import job

@job("unit.dup")
def dup(a): ...

{between}
@job("unit.dup")
def dup(a, b=2): ...
"""
ONCE = TWICE.partition("{between}")[0]


@pytest.fixture
def module(tmp_path, monkeypatch):
    """Write the text of a module `leasequeue_dup`; it is forgotten afterwards."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)

    def write(text):
        (tmp_path / "leasequeue_dup.py").write_text(text)
        importlib.invalidate_caches()

    yield write
    sys.modules.pop("leasequeue_dup", None)


@pytest.mark.parametrize("between", ["", "import os\n"])
def test_one_name_twice_in_a_module(module, between):
    """The second function hides the first in Python, and must not do so in the queue."""
    module(TWICE.format(between=between))
    with pytest.raises(ImproperlyConfigured, match=r"named 'unit\.dup': .*leasequeue_dup\.dup and"):
        importlib.import_module("leasequeue_dup")


def test_a_module_that_is_run_again(module):
    """A reload, as it is and changed, and a second import under the same name."""
    module(ONCE)
    first = importlib.import_module("leasequeue_dup")
    again = vars(importlib.reload(first))["dup"]
    assert registry.get("unit.dup") is again
    module(f"import os\n{ONCE.replace('(a)', '(a, c=3)')}")
    changed = vars(importlib.reload(first))["dup"]
    assert changed.payload_from((1, 2), {}) == {"a": 1, "c": 2}
    assert registry.get("unit.dup") is changed
    del sys.modules["leasequeue_dup"]
    second = vars(importlib.import_module("leasequeue_dup"))["dup"]
    assert second is not changed
    assert registry.get("unit.dup") is second


def test_a_reload_that_has_it_twice(module):
    module(ONCE)
    first = importlib.import_module("leasequeue_dup")
    module(TWICE.format(between=""))
    with pytest.raises(ImproperlyConfigured, match=r"unit\.dup"):
        importlib.reload(first)


class Rest:
    def handle(self, **fields):
        return fields


class Fixture:
    @classmethod
    def handle(cls, context, **fields):
        return context, fields


class Static:
    @staticmethod
    def handle(self, **fields):  # noqa: PLW0211
        return self, fields


def context_and_rest(context, **fields):
    return fields


@pytest.mark.parametrize(
    ("handler", "name"),
    [(Rest, "self"), (Fixture, "cls"), (Fixture, "context"), (context_and_rest, "context")],
)
def test_a_field_whose_name_the_handler_gets_already(handler, name):
    """It would be accepted by `**fields`, and fail in each attempt."""
    policy = {"takes_context": True} if handler is context_and_rest else {}
    kind = job("unit.taken", **policy)(handler)
    with pytest.raises(EnqueueError, match=f"a field cannot be called '{name}'"):
        build_request("unit.taken", {name: 1})
    with pytest.raises(RejectedJob, match=f"a field cannot be called '{name}'"):
        kind.check_payload({name: 1})
    kind.check_payload({"other": 1})


def test_a_field_that_is_called_as_nothing_else_is():
    kind = job("unit.taken")(Static)
    assert kind.begin()(**kind.accept({"self": 1}, 1).arguments) == (1, {})
    other = job("unit.free")(takes_rest)
    other.check_payload({"a": 1, "self": 1, "context": 2})


def test_an_unknown_field_is_not_told_by_its_name():
    """Names in a payload that another program wrote are data; this text is stored."""
    kind = job("unit.unknown")(plain)
    with pytest.raises(RejectedJob, match=r"1 field is unknown; known: a, b, c$") as caught:
        kind.check_payload({"a": 1, "alice@example.com": 1})
    assert "alice" not in str(caught.value)


def test_a_bare_decorator_names_the_job_after_app_and_function():
    from reports import jobs

    def build(a):
        return a

    build.__module__ = jobs.__name__
    assert job(build).name == "reports.build"
    build.__module__ = "no.such.app"
    assert job(build).name == "no.such.app.build"


def test_the_declared_name_is_the_plain_function():
    kind = job("unit.plain", queue="q", priority=7, max_attempts=2, backoff=Fixed(1))(plain)
    assert isinstance(kind, JobType)
    assert kind(1, c=9) == (1, 2, 9)
    assert registry.get("unit.plain") is kind
    assert (kind.queue, kind.priority, kind.max_attempts) == ("q", 7, 2)


def test_using_leaves_the_declaration_alone():
    kind = job("unit.using")(plain)
    other = kind.using(queue="q").using(key="k")
    assert other.options == {"queue": "q", "key": "k"}
    assert kind.options == {}
    assert registry.get("unit.using") is kind


@pytest.mark.parametrize(
    ("args", "kwargs", "payload"),
    [
        ((1,), {}, {"a": 1}),
        ((1, 5), {"c": 6}, {"a": 1, "b": 5, "c": 6}),
        ((), {"a": 1}, {"a": 1}),
    ],
)
def test_arguments_are_bound_to_names(args, kwargs, payload):
    assert job("unit.bind")(plain).payload_from(args, kwargs) == payload


def test_the_context_is_no_part_of_the_payload():
    kind = job("unit.context", takes_context=True)(with_context)
    assert kind.payload_from((1,), {}) == {"a": 1}
    kind.check_payload({"a": 1})
    with pytest.raises(RejectedJob):
        kind.check_payload({"context": 1, "a": 1})


def test_the_rest_is_spread_into_the_payload():
    kind = job("unit.rest")(takes_rest)
    assert kind.payload_from((1,), {"x": 2, "y": 3}) == {"a": 1, "x": 2, "y": 3}


@pytest.mark.parametrize("payload", [{}, {"a": 1, "z": 2}, {"b": 1}])
def test_a_payload_that_does_not_fit(payload):
    kind = job("unit.misfit")(plain)
    with pytest.raises(RejectedJob, match=r"^Malformed job payload: unit.misfit: "):
        kind.check_payload(payload)
    with pytest.raises(TypeError, match=r"^unit.misfit: "):
        kind.payload_from((), payload)


def test_a_misfit_is_told_without_values():
    kind = job("unit.secret")(plain)
    with pytest.raises(RejectedJob) as caught:
        kind.check_payload({"a": "hunter2", "z": "hunter2"})
    assert "hunter2" not in str(caught.value)
