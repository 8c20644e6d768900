"""What is printed of the package's values, in a log, an error or a debugger, shows no data."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from dataclasses import fields, is_dataclass
from typing import Any

import pytest

import django_leasequeue
from django_leasequeue import JobResult, job
from django_leasequeue.core.lease import Lease
from django_leasequeue.outcomes import End, Outcome
from django_leasequeue.registry import registry
from django_leasequeue.runtime.messages import Report

SECRET = "hunter2"
#: Whatever has one of these names is data of a job, or holds it.
DATA = {
    "payload",
    "result",
    "key",
    "context",
    "checkpoint",
    "arguments",
    "data",
    "options",
    "params",
    "text",
}
#: Texts of errors, which are made without data.
SAFE = {("ErrorSummary", "text"), ("Figure", "text"), ("LastEnd", "text"), ("Ran", "context")}


def values() -> list[Any]:
    """Return the dataclasses and named tuples of the package that hold data of a job."""
    found = {}
    for info in pkgutil.walk_packages(django_leasequeue.__path__, "django_leasequeue."):
        if ".migrations." in info.name:
            continue
        for thing in vars(importlib.import_module(info.name)).values():
            if inspect.isclass(thing) and thing.__module__ == info.name and holds_data(thing):
                found[f"{info.name}.{thing.__qualname__}"] = thing
    return [pytest.param(thing, id=name) for name, thing in sorted(found.items())]


def names_of(kind: Any) -> list[str]:
    if is_dataclass(kind):
        return [item.name for item in fields(kind)]
    return list(getattr(kind, "_fields", ()))


def holds_data(kind: Any) -> bool:
    return bool(data_of(kind))


def data_of(kind: Any) -> set[str]:
    return {name for name in DATA & set(names_of(kind)) if (kind.__name__, name) not in SAFE}


@pytest.mark.parametrize("kind", values())
def test_no_data_in_a_repr(kind):
    hidden = data_of(kind)
    contents = {name: SECRET if name in hidden else "shown" for name in names_of(kind)}
    if is_dataclass(kind):
        value = object.__new__(kind)
        for name, content in contents.items():
            object.__setattr__(value, name, content)
    else:
        value = kind._make(contents.values())
    assert SECRET not in repr(value)


def test_the_walk_finds_them():
    names = {param.values[0].__name__ for param in values()}
    assert names >= {"Outcome", "Request", "Claimed", "Sealed", "Accepted", "_Row", "JobType"}


def test_what_holds_them_shows_none_either():
    outcome = Outcome(End.COMPLETED, result=SECRET)
    assert SECRET not in repr(Report(Lease(1, b""), outcome))
    assert SECRET not in repr(JobResult.success({SECRET: 1}))
    kind = job("unit.repr", key=SECRET)(lambda: None)
    registry.remove("unit.repr")
    assert SECRET not in repr(kind.using(key=SECRET))
