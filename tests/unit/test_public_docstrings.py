"""Docstrings of public names are contracts: parameters, units, errors, where a rule is from."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import django_leasequeue
from django_leasequeue import testing
from django_leasequeue.core.request import build_request

#: Amounts, and the words one of which says what they are amounts of.
UNITS = {
    "base": "seconds",
    "batch": "jobs",
    "batch_size": "rows",
    "canary": "jobs",
    "canary_wait": "seconds",
    "cap": "seconds",
    "count": "how many",
    "delay": "seconds",
    "died_after": "aware",
    "died_before": "aware",
    "every": "seconds",
    "expires": "seconds",
    "fraction": "from 0 to 1",
    "jitter": "seconds",
    "limit": "jobs",
    "older_than": "seconds",
    "pause": "seconds",
    "priority": "-100 to 100",
    "rate": "jobs a second",
    "run_after": "datetime",
    "seconds": "seconds",
    "spread": "seconds",
    "text": "characters",
    "timeout": "seconds",
}
#: Whose rule it is, of what the reference systems have.
SOURCES = {
    "Exponential": "S2",
    "Fixed": "S2",
    "JobError": "S1",
    "JobResult": "S2",
    "JobResult.is_success": "S2",
    "JobResult.skipped": "S2",
    "JobContext.complete": "S1",
    "JobContext.effect_key": "S1",
    "JobType": "S2",
    "LeaseLost": "S1",
    "Linear": "S2",
    "RejectedJob": "S1",
    "Reject": "S1",
    "Skip": "S2",
    "Worker.run": "S1",
    "add_schedule": "S3",
    "enqueue": "S1",
    "prune": "S1",
    "sign": "S2",
    "verify": "S2",
}
#: Explained once for all: the database alias. `self` and catch-alls are no parameters to explain.
SHARED = {"self", "cls", "using", "options", "policy", "changes", "args", "payload_args"}


def things() -> Iterator[tuple[str, Any]]:
    for home in (django_leasequeue, testing):
        for name in home.__all__:
            thing = getattr(home, name)
            yield name, thing
            if inspect.isclass(thing) and not issubclass(thing, BaseException):
                for member, value in vars(thing).items():
                    if not member.startswith("_") and (
                        inspect.isroutine(value) or is_method(value)
                    ):
                        yield f"{name}.{member}", getattr(thing, member)


def is_method(value: Any) -> bool:
    return inspect.isroutine(value) or isinstance(value, property | classmethod | staticmethod)


NAMES = dict(things())
CALLED = {name: thing for name, thing in NAMES.items() if inspect.isroutine(thing)}


def doc(name: str) -> str:
    """Return what a docstring says, with that of the name it leaves the rest to."""
    text = " ".join((inspect.getdoc(NAMES[name]) or "").split())
    home = name.rpartition(".")[0]
    for other in re.findall(r"(?:Do what|otherwise as|as in|as) `(\w+)`", text):
        text += doc(other) if other in NAMES and other != name else ""
        member = f"{home}.{other}"
        text += doc(member) if home and member in NAMES and member != name else ""
    return text


def parameters(thing: Callable[..., Any]) -> set[str]:
    if inspect.isclass(thing) and thing.__init__ is object.__init__:
        return set()
    return set(inspect.signature(thing).parameters) - SHARED


@pytest.mark.parametrize("name", CALLED)
def test_each_parameter_is_explained(name):
    text = doc(name)
    assert [item for item in sorted(parameters(NAMES[name])) if f"`{item}`" not in text] == []


#: Classes that projects call; the others are given to them, or are data.
MADE = (
    "Exponential",
    "Fixed",
    "JobFilter",
    "Linear",
    "Reject",
    "Retry",
    "Skip",
    "Snooze",
    "Worker",
)


@pytest.mark.parametrize("name", MADE)
def test_each_argument_of_a_class_is_explained(name):
    text = doc(name)
    for item in parameters(NAMES[name]):
        assert re.search(rf"`{item}\b", text), item
        assert UNITS.get(item, "") in text, item


@pytest.mark.parametrize("name", CALLED)
def test_amounts_have_a_unit(name):
    text = doc(name)
    for item in parameters(NAMES[name]) & set(UNITS):
        assert UNITS[item] in text or f"{item}` ticks" in text, item


@pytest.mark.parametrize("name", SOURCES)
def test_a_rule_names_its_source(name):
    assert f"S{SOURCES[name][1]}" in doc(name)


def test_the_errors_of_an_enqueue_are_told():
    """Every option that can be refused is one that the docstring of enqueue has."""
    options = set(inspect.signature(build_request).parameters) - {"job_type", "payload"}
    assert [item for item in sorted(options) if f"`{item}`" not in doc("enqueue")] == []


@pytest.mark.parametrize("name", CALLED)
def test_it_says_what_it_raises(name):
    assert re.search(r"\b[Rr]aises?\b", doc(name))
