"""`@job` on a class: its handle and its failed, a fresh object for each attempt (seed S2)."""

from __future__ import annotations

import abc
from types import MethodType

import pytest
from django.core.exceptions import ImproperlyConfigured

from django_leasequeue import JobType, job
from django_leasequeue.registry import registry


@pytest.fixture(autouse=True)
def _registry():
    before = set(registry)
    yield
    for kind in set(registry) - before:
        registry.remove(kind.name)


class Invoice:
    def __init__(self, paper="A4"):
        self.paper = paper

    def handle(self, order_id, copies=1):
        return order_id, copies, self.paper


class WithContext:
    def handle(self, context, order_id):
        return context, order_id

    def failed(self, context, error):
        return context, error


class Static:
    @staticmethod
    def handle(order_id):
        return order_id


class NeedsArguments(Invoice):
    def __init__(self, service):
        pass


class Abstract(abc.ABC):
    @abc.abstractmethod
    def handle(self): ...


class NoHandle:
    pass


class TakesArgs:
    def handle(self, *args):
        pass


class Coroutine:
    async def handle(self, order_id):
        return order_id


def hook(context, error):
    pass


@pytest.mark.parametrize(
    ("handler", "policy", "says"),
    [
        (NeedsArguments, {}, "__init__ must need no arguments"),
        (Abstract, {}, "abstract"),
        (NoHandle, {}, r"needs a method handle\(self, \*\*payload\)"),
        (TakesArgs, {}, r"\*args"),
        (Coroutine, {"atomic": True}, "plain functions"),
        (WithContext, {"failed": hook}, "option failed must be left out"),
        (Invoice, {"takes_context": True}, "first parameter named 'context'"),
    ],
)
def test_a_class_that_can_never_run(handler, policy, says):
    with pytest.raises(ImproperlyConfigured, match=says) as caught:
        job("unit.refused", **policy)(handler)
    assert handler.__qualname__ in str(caught.value)
    assert registry.get("unit.refused") is None


def test_its_handle_takes_the_payload():
    kind = job("unit.class")(Invoice)
    assert isinstance(kind, JobType)
    assert not kind.takes_context
    assert kind.payload_from((7,), {"copies": 2}) == {"order_id": 7, "copies": 2}
    assert kind.begin()(order_id=7) == (7, 1, "A4")


def test_each_attempt_has_an_object_of_its_own():
    kind = job("unit.class")(WithContext)
    first, second = kind.begin(), kind.begin()
    assert isinstance(first, MethodType)
    assert isinstance(second, MethodType)
    assert first.__self__ is not second.__self__


def test_a_first_parameter_context_is_the_context():
    kind = job("unit.class")(WithContext)
    assert kind.takes_context
    assert kind.payload_from((7,), {}) == {"order_id": 7}


def test_a_payload_may_have_a_field_context():
    kind = job("unit.class", takes_context=False)(WithContext)
    assert kind.payload_from((), {"context": 1, "order_id": 7}) == {"context": 1, "order_id": 7}


def test_its_failed_is_the_hook():
    kind = job("unit.class")(WithContext)
    assert kind.failed is not None
    assert kind.failed("context", "error") == ("context", "error")
    assert job("unit.none")(Invoice).failed is None
    assert job("unit.hook", failed=hook)(Invoice).failed is hook


def test_a_static_handle():
    assert job("unit.static")(Static).payload_from((7,), {}) == {"order_id": 7}


def test_the_decorated_name_makes_objects_and_is_a_base_class():
    kind = job("unit.class")(Invoice)
    assert kind("A5").handle(7) == (7, 1, "A5")
    large = type(Invoice)("Large", (Invoice,), {})

    class Larger(kind):  # type: ignore[valid-type]
        pass

    assert Larger.__mro__[1:] == large.__mro__[1:]


def test_a_function_s_job_type_is_no_base_class():
    kind = job("unit.function")(lambda: None)
    with pytest.raises(TypeError, match=r"unit\.function is a job type made of a function"):
        exec("class Sub(kind): pass", {"kind": kind})


def test_a_bare_decorator_names_the_class():
    Invoice.__module__ = "no.such.app"
    try:
        assert job(Invoice).name == "no.such.app.Invoice"
    finally:
        Invoice.__module__ = __name__
