"""Declarations as data: the keys, defaults, aliases and shorthands of seed S2's module.json."""

from __future__ import annotations

import json
import math
from dataclasses import fields

import pytest
from django.core.exceptions import ImproperlyConfigured

from django_leasequeue import Exponential, Fixed, Linear
from django_leasequeue.declaration import Declaration
from django_leasequeue.doctor import configuration
from django_leasequeue.manifest import declare_jobs, parse_jobs
from django_leasequeue.registry import Registry
from tests.unit import manifest_handlers as handlers

HERE = "tests.unit.manifest_handlers"
PLAIN = f"{HERE}.plain"
POLICY = [item.name for item in fields(Declaration) if item.name not in ("handler", "name")]


def declared(jobs):
    """Return the job types of a manifest by name, as a process that starts has them."""
    registry = Registry()
    declare_jobs(jobs, registry)
    return {kind.name: kind for kind in registry}


def only(entry, **top):
    (kind,) = declared({"jobs": [entry], **top}).values()
    return kind


def test_a_text_is_a_name_that_is_its_handler():
    kind = only(PLAIN)
    assert (kind.name, kind.handler, kind.queue) == (PLAIN, handlers.plain, "default")
    assert (kind.max_attempts, kind.backoff, kind.timeout) == (None, None, None)


def test_an_object_entry():
    """The example of S2's page, with its figures."""
    kind = only(
        {
            "name": "invoices.generate-pdf",
            "handler": f"{HERE}.SendInvoice",
            "queue": "reports",
            "retry": {"max": 5, "strategy": "exponential", "base": 60, "jitter": True},
            "timeout": 30,
        }
    )
    assert (kind.name, kind.queue, kind.timeout) == ("invoices.generate-pdf", "reports", 30)
    assert (kind.max_attempts, kind.backoff) == (5, Exponential(60, 3600, jitter=True))


def test_the_handler_defaults_to_the_name():
    assert only({"name": PLAIN}).handler is handlers.plain


@pytest.mark.parametrize(
    ("retry", "attempts", "backoff"),
    [
        (5, 5, Exponential(1, 3600, jitter=False)),
        (0, 1, Exponential(1, 3600, jitter=False)),
        ({}, 3, Exponential(1, 3600, jitter=False)),
        ({"max": 0}, 1, Exponential(1, 3600, jitter=False)),
        ({"max": -7}, 1, Exponential(1, 3600, jitter=False)),
        ({"max": None}, 3, Exponential(1, 3600, jitter=False)),
        ({"base": 60}, 3, Exponential(60, 3600, jitter=False)),
        ({"delay": 60}, 3, Exponential(60, 3600, jitter=False)),
        ({"base": 5, "delay": 60}, 3, Exponential(5, 3600, jitter=False)),
        ({"base": 0}, 3, Exponential(1, 3600, jitter=False)),
        ({"base": -1, "jitter": True}, 3, Exponential(1, 3600, jitter=True)),
        ({"strategy": "linear"}, 3, Linear(1, 600)),
        ({"strategy": "linear", "base": 30, "jitter": True}, 3, Linear(30, 600)),
        ({"strategy": "fixed", "delay": 60}, 3, Fixed(60)),
        ({"strategy": "fixed"}, 3, Fixed(1)),
        ({"strategy": "fibonacci", "max": 2}, 2, Exponential(1, 3600, jitter=False)),
        ({"strategy": "LINEAR"}, 3, Exponential(1, 3600, jitter=False)),
        ({"strategy": 5}, 3, Exponential(1, 3600, jitter=False)),
    ],
)
def test_retry(retry, attempts, backoff):
    kind = only({"name": PLAIN, "retry": retry})
    assert (kind.max_attempts, kind.backoff) == (attempts, backoff)


def test_the_top_level_is_for_entries_that_declare_none():
    entries = [PLAIN, {"name": f"{HERE}.coroutine", "retry": {"max": 2}, "timeout": 5}]
    for module in ({}, {"type": "job"}):
        kinds = declared({"jobs": entries, "retry": 7, "timeout": 30, "name": "x", **module})
        plain, coroutine = kinds.values()
        assert (plain.max_attempts, plain.timeout) == (7, 30)
        assert (coroutine.max_attempts, coroutine.timeout) == (2, 5)
    assert only({"name": PLAIN, "retry": None}, retry=7).max_attempts == 7


def test_the_top_level_of_another_kind_of_module_says_nothing():
    kind = only(PLAIN, type="service", retry=7, timeout=30)
    assert (kind.max_attempts, kind.timeout) == (None, None)


@pytest.mark.parametrize("jobs", [[], (), {}, {"jobs": []}])
def test_none_at_all(jobs):
    assert declared(jobs) == {}


def test_a_list_is_the_entries():
    assert list(declared([PLAIN, f"{HERE}.coroutine"])) == [PLAIN, f"{HERE}.coroutine"]


@pytest.mark.parametrize("as_text", [True, False])
@pytest.mark.parametrize("content", [[PLAIN], {"name": "shop", "jobs": [PLAIN]}])
def test_a_json_file(tmp_path, as_text, content):
    path = tmp_path / "module.json"
    path.write_text(json.dumps(content))
    assert list(declared(str(path) if as_text else path)) == [PLAIN]


@pytest.mark.parametrize(
    ("path", "context", "hook"),
    [
        ("plain", False, False),
        ("with_context", True, False),
        ("coroutine", False, False),
        ("SendInvoice", True, True),
        ("declared", True, False),
    ],
)
def test_functions_coroutines_classes_and_job_types(path, context, hook):
    kind = only({"name": "n", "handler": f"{HERE}.{path}"})
    assert (kind.takes_context, kind.failed is not None) == (context, hook)
    kind.payload_from((1,), {})


def test_what_is_declared_at_the_handler_holds_where_the_entry_is_silent():
    kind = only({"name": "n", "handler": f"{HERE}.strict"})
    for name in POLICY:
        assert getattr(kind, name) == getattr(handlers.strict, name), name
    assert kind.name == "n"
    kind = only(
        {"name": "n", "handler": f"{HERE}.strict", "queue": "q", "timeout": 9, "retry": 2},
    )
    assert (kind.queue, kind.timeout, kind.max_attempts) == ("q", 9, 2)
    assert kind.backoff == Exponential(1, 3600, jitter=False)
    assert (kind.permanent, kind.lease, kind.priority) == ((LookupError,), 120, 5)
    assert only({"name": "n", "handler": f"{HERE}.strict"}, timeout=30, retry=7).timeout == 30


@pytest.mark.parametrize(
    ("entry", "says"),
    [
        ({}, "entry 0 has no name"),
        ({"handler": PLAIN}, "entry 0 has no name"),
        ({"name": ""}, "entry 0 has no name"),
        ("", "entry 0 has no name"),
        ({"name": 5}, "entry 0 has no name"),
        (5, "entry 0 is neither a name nor an object"),
        ([PLAIN], "entry 0 is neither"),
        ({"name": "n", "handler": 5}, r"entry 0 \(n\): handler must be a dotted path"),
        ({"name": "no.such.module"}, r"entry 0 .*cannot be imported: ModuleNotFoundError"),
        ({"name": "plain"}, r"cannot be imported: ImportError"),
        ({"name": f"{HERE}.nothing"}, r"cannot be imported: ImportError"),
        ({"name": f"{HERE}.not_callable"}, "is no function and no class"),
        ({"name": f"{HERE}.NeedsArguments"}, "__init__ must need no arguments"),
        (
            {"name": PLAIN, "retries": 3},
            r"unknown key 'retries'\. Known: catch_up, cron, every, handler",
        ),
        ({"name": PLAIN, "retry": {"maximum": 3}}, "retry: unknown key 'maximum'"),
        ({"name": PLAIN, "retry": "5"}, "retry must be an object"),
        ({"name": PLAIN, "retry": True}, "retry must be an object"),
        ({"name": PLAIN, "retry": {"max": "5"}}, r"retry\.max must be a number"),
        ({"name": PLAIN, "retry": {"max": 1.5}}, r"retry\.max must be a whole number"),
        ({"name": PLAIN, "retry": 40_000}, "max_attempts must be a whole number between 1 and"),
        ({"name": PLAIN, "retry": {"base": "1"}}, r"retry\.base must be a number"),
        ({"name": PLAIN, "retry": {"base": math.nan}}, r"retry\.base must be a number"),
        ({"name": PLAIN, "retry": {"jitter": "yes"}}, r"retry\.jitter must be true or false"),
        ({"name": PLAIN, "timeout": 0}, "timeout must be a number of seconds above 0"),
        ({"name": PLAIN, "timeout": "30"}, "timeout must be a number"),
        ({"name": PLAIN, "queue": ""}, "queue must have 1 to 64 characters"),
        ({"name": PLAIN, "queue": 5}, "queue must have"),
    ],
)
def test_an_entry_that_is_wrong(entry, says):
    """An entry without a name is skipped in S2; here it is an error like any other."""
    with pytest.raises(ImproperlyConfigured, match=says) as caught:
        declared([entry])
    assert str(caught.value).startswith("LEASEQUEUE['JOBS'], entry 0")


def test_a_file_is_named(tmp_path):
    path = tmp_path / "module.json"
    path.write_text('{"jobs": [{"nom": 1}]}')
    with pytest.raises(ImproperlyConfigured, match=r"module\.json, entry 0 has no name"):
        declared(path)


@pytest.mark.parametrize("content", [None, "", "{", '"jobs"', '{"jobs": {}}', "5"])
def test_a_file_that_is_no_manifest(tmp_path, content):
    path = tmp_path / "module.json"
    if content is not None:
        path.write_text(content)
    with pytest.raises(ImproperlyConfigured, match=r"module\.json"):
        declared(path)


def test_a_name_twice_names_both_entries():
    says = r"named 'n': LEASEQUEUE\['JOBS'\], entry 0 \(n\) and LEASEQUEUE\['JOBS'\], entry 1 \(n\)"
    with pytest.raises(ImproperlyConfigured, match=says):
        declared([{"name": "n", "handler": PLAIN}] * 2)


def test_a_name_that_has_a_decorator_too():
    registry = Registry()
    registry.add(handlers.declared)
    with pytest.raises(ImproperlyConfigured, match=r"@job on .*with_context and .*entry 0"):
        declare_jobs([{"name": "elsewhere", "handler": PLAIN}], registry)


def test_the_same_manifest_again_is_a_reload():
    registry = Registry()
    for _ in range(2):
        declare_jobs([PLAIN], registry)
    assert len(list(registry)) == 1


def test_parsing_registers_nothing_and_knows_the_places():
    ((kind, place),) = parse_jobs([PLAIN])
    assert (kind.name, place) == (PLAIN, f"LEASEQUEUE['JOBS'], entry 0 ({PLAIN})")


@pytest.mark.parametrize("jobs", [5, {1}, None])
def test_the_setting_has_one_of_three_forms(settings, jobs):
    settings.LEASEQUEUE = {"JOBS": jobs}
    (error,) = configuration.settings()
    assert "LEASEQUEUE['JOBS']" in error.what


def test_the_system_check(settings):
    settings.LEASEQUEUE = {"JOBS": [PLAIN]}
    assert list(configuration.jobs()) == []
    settings.LEASEQUEUE = {"JOBS": [{"name": PLAIN, "timeout": 0}]}
    (error,) = configuration.jobs()
    assert (error.kind.id, "entry 0" in error.what) == ("leasequeue.E004", True)
