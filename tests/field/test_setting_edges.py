"""I14: zero, negative, texts from the environment, unknown keys, '*' beside names: all refused.

Every setting and every option of the worker meets every odd value. What is accepted is listed.
"""

from __future__ import annotations

import argparse
import math
from dataclasses import fields

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.core.management import call_command
from django.core.management.base import CommandError

from django_leasequeue.cli.worker import add_worker_arguments
from django_leasequeue.conf import BOUNDS, Conf, get_conf

ODD = {
    "None": None,
    "empty": "",
    "'0'": "0",
    "'5'": "5",
    "'-1'": "-1",
    "0": 0,
    "-1": -1,
    "1.5": 1.5,
    "True": True,
    "False": False,
    "nan": math.nan,
    "inf": math.inf,
    "-inf": -math.inf,
    "huge": 10**400,
    "bytes": b"5",
    "[]": [],
    "{}": {},
    "()": (),
    "[None]": [None],
    "[5]": [5],
    "{5: 5}": {5: 5},
    "{'': {}}": {"": {}},
    "set": set(),
    "object": object(),
    "class": Conf,
    "module": "no.such.module",
    "word": "nodots",
    "NUL": "a\x00b",
    "long": "x" * 5000,
}
#: What is no mistake: a time limit and waits of a second and a half, zero where it means at once,
#: nothing at all where a list or a dictionary may be empty.
ACCEPTED = {
    "MIN_LEASE": {"1.5"},
    "TIMEOUT": {"None", "1.5"},
    "KILL_AFTER": {"0", "1.5"},
    "POLL_MAX": {"1.5"},
    "GRACE": {"0", "1.5"},
    "DATABASE_OUTAGE_LIMIT": {"0", "1.5"},
    "WORKERS": {"{}"},
    "RETENTION": {"{}"},
    "MIDDLEWARE": {"[]", "()"},
    "SIGNING_KEYS": {"[]", "()"},
    "METRICS_TOKEN": {"empty", "long"},
    "NUDGE_FOLDER": {"empty"},
}
#: Read when the apps are loaded, and checked then: tests/unit/test_manifest.py.
LATER = {"JOBS"}


@pytest.mark.parametrize("name", [item.name for item in fields(Conf) if item.name not in LATER])
def test_a_setting_is_refused_by_its_name_or_is_meant(settings, name):
    accepted = set()
    for word, value in ODD.items():
        settings.LEASEQUEUE = {name: value}
        said = complaint()
        assert name in said or not said, word
        if not said:
            accepted.add(word)
    assert accepted == ACCEPTED.get(name, set())


def complaint():
    try:
        get_conf()
    except ImproperlyConfigured as error:
        return str(error)
    return ""


@pytest.mark.parametrize("keys", [("LEASES",), ("lease",), ("LEASE ",), (5,), (None, "a", 5)])
def test_unknown_keys_are_named_with_the_known(settings, keys):
    settings.LEASEQUEUE = dict.fromkeys(keys, 60)
    with pytest.raises(ImproperlyConfigured, match="Unknown LEASEQUEUE setting") as caught:
        get_conf()
    for key in keys:
        assert repr(key) in str(caught.value)
    assert "DATABASE" in str(caught.value)


def test_a_backoff_that_cannot_be_made(settings):
    settings.LEASEQUEUE = {"BACKOFF": "tests.field.test_setting_edges.Demanding"}
    with pytest.raises(ImproperlyConfigured, match="BACKOFF"):
        get_conf()


class Demanding:
    def __init__(self, needed):
        raise AssertionError("unreachable")


# The command's options

WORDS = ["", "0", "-1", "nan", "inf", "1e400", "9" * 400, "x", "1.5", "*,a", "a,*", "a,,a", "a,a"]
LONG = "q" * 101
WORDS += ["a\x00b", LONG, " "]
#: Options that are names or paths: "0" is one as good as another.
NAMES = {"--metrics-host", "--heartbeat-file", "--name", "--queues"}
MAY_BE = {
    "--kill-after": {"0", "1.5"},
    "--max-memory": {"0", "1.5"},
    "--max-jobs-per-child": {"0", "9" * 400},
    "--max-jobs": {"9" * 400},
    "--drain-wait": {"0", "1.5"},
    "--max-seconds": {"1.5"},
    "--grace": {"0", "1.5"},
    "--poll-max": {"1.5"},
    "--metrics-port": {"0"},
}
REFUSED_NAMES = {
    "--name": {"", "a\x00b", LONG, "9" * 400},
    "--queues": {"", "*,a", "a,*", "a,,a", "a,a", "a\x00b", LONG, "9" * 400, " "},
}


def options():
    parser = argparse.ArgumentParser(add_help=False)
    add_worker_arguments(parser)
    return [action.option_strings[0] for action in parser._actions if action.nargs != 0]


class Started(Exception):
    pass


@pytest.fixture
def refused(queue_db, monkeypatch):
    """Tell whether the command refuses an option before any worker is made."""

    def start(*args, **kwargs):
        raise Started

    def refuses(option, word):
        with pytest.raises((CommandError, Started)) as caught:
            call_command("runworker", f"{option}={word}")
        if caught.type is Started:
            return False
        told = str(caught.value)
        assert option in told or option in {"--lease", "--database", "--profile"}
        return True

    monkeypatch.setattr("django_leasequeue.cli.worker.Worker", start)
    return refuses


@pytest.mark.parametrize("option", options())
def test_an_option_is_refused_by_its_name_or_is_meant(refused, option):
    if option in NAMES:
        assert {word for word in WORDS if refused(option, word)} == REFUSED_NAMES.get(option, set())
    else:
        accepted = {word for word in WORDS if not refused(option, word)}
        assert accepted == MAY_BE.get(option, set())


def option_of(name):
    return f"--{name.lower().replace('_', '-')}"


@pytest.mark.parametrize("name", [name for name in BOUNDS if option_of(name) in options()])
def test_an_option_has_no_wider_bounds_than_its_setting(refused, name):
    option = option_of(name)
    low, high = BOUNDS[name]
    assert refused(option, high + 1)
    assert refused(option, low - 1)
