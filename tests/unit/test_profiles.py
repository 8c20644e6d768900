"""Profiles as a worker's options: every key is one, every wrong value is told with its profile."""

from __future__ import annotations

from dataclasses import fields

import pytest
from django.core.exceptions import ImproperlyConfigured

from django_leasequeue.runtime.options import WorkerOptions
from django_leasequeue.runtime.profiles import profile_options, workers_options

KNOWN = {item.name for item in fields(WorkerOptions)} - {"source", "log_format"}


@pytest.fixture
def profiles(settings):
    """Return a function that sets the profiles of the project."""

    def set_profiles(**workers):
        settings.LEASEQUEUE = {**settings.LEASEQUEUE, "WORKERS": workers}

    return set_profiles


def test_a_profile_is_the_options_of_a_worker_named_after_it(profiles):
    profiles(mail={"queues": ["mail", "urgent"], "processes": 2}, b={"name": "other"}, c={})
    assert profile_options("mail") == {
        "name": "mail",
        "queues": ["mail", "urgent"],
        "processes": 2,
    }
    assert profile_options("b") == {"name": "other"}
    assert profile_options("c") == {"name": "c"}


@pytest.mark.parametrize("key", sorted(KNOWN))
def test_every_option_may_be_in_a_profile(profiles, key):
    value = getattr(WorkerOptions(), key)
    profiles(mail={key: value})
    assert profile_options("mail")[key] == value
    (told,) = workers_options(["mail"], {})
    assert getattr(WorkerOptions(**told), key) == value


@pytest.mark.parametrize("key", sorted(KNOWN))
@pytest.mark.parametrize("value", [{"a": 1}, [5], b"5"])
def test_no_option_takes_just_anything(profiles, key, value):
    profiles(mail={key: value})
    with pytest.raises(ImproperlyConfigured, match=rf"\['WORKERS'\]\['mail'\]: '{key}' must be"):
        profile_options("mail")


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"processes": "2"}, "'processes' must be int, not '2'"),
        ({"processes": True}, "'processes' must be int, not True"),
        ({"processes": 2.0}, "'processes' must be int, not 2.0"),
        ({"processes": None}, "'processes' must be int, not None"),
        ({"grace": "30"}, "'grace' must be int or float, not '30'"),
        ({"drain": 1}, "'drain' must be bool, not 1"),
        ({"max_jobs": 1.5}, "'max_jobs' must be int or None, not 1.5"),
        ({"queues": None}, "'queues' must be str or a list of str or a tuple of str, not None"),
        ({"queue": "mail"}, "unknown option 'queue'. Known: database, drain, drain_wait, grace"),
        ({"source": print}, "unknown option 'source'"),
        ({"log_format": "json"}, "unknown option 'log_format'"),
        ({5: 5, "a": 1}, "unknown option 'a', 5"),
    ],
)
def test_what_is_wrong_is_told_with_the_profile(profiles, options, says):
    profiles(mail=options)
    with pytest.raises(ImproperlyConfigured) as caught:
        profile_options("mail")
    assert str(caught.value).startswith("LEASEQUEUE['WORKERS']['mail']: ")
    assert says in str(caught.value)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"processes": 0}, "--processes and --threads must be 1 to 1000"),
        ({"max_jobs": 0}, "--max-jobs must be at least 1"),
        ({"max_memory": -1}, "must not be negative"),
        ({"queues": []}, "--queues: "),
        ({"lease": 0.1}, "A lease of 0.1 s is below"),
        ({"lease": float("nan")}, "a lease is at most"),
        ({"database": "nowhere"}, "'nowhere' is no alias in DATABASES"),
        ({"name": ""}, "--name must have 1 to 100 printable characters"),
    ],
)
def test_values_no_worker_could_run_with_are_told_too(profiles, options, says):
    profiles(mail=options)
    with pytest.raises(ImproperlyConfigured) as caught:
        workers_options(["mail"], {})
    assert str(caught.value).startswith("Worker profile 'mail': ")
    assert says in str(caught.value)


def test_a_profile_that_is_not_there(profiles):
    with pytest.raises(ImproperlyConfigured, match="Known: none, LEASEQUEUE"):
        profile_options("mail")
    profiles(mail={}, reports={})
    with pytest.raises(ImproperlyConfigured, match=r"profile 'mial'\. Known: mail, reports\."):
        profile_options("mial")


def test_what_is_given_wins_over_every_profile(profiles):
    profiles(mail={"queues": "mail", "grace": 5, "drain": True}, reports={"name": "r"})
    given = {"grace": 9, "drain": False}
    assert workers_options(["mail", "reports"], given) == [
        {"name": "mail", "queues": "mail", "grace": 9, "drain": False},
        {"name": "r", "grace": 9, "drain": False},
    ]
    assert workers_options(["mail"], {"name": "mine"})[0]["name"] == "mine"


def test_without_profiles_there_is_one_worker(profiles):
    profiles(mail={"queues": "mail"})
    assert workers_options([], {"grace": 9}) == [{"grace": 9}]
    with pytest.raises(ImproperlyConfigured, match=r"^--max-jobs must"):
        workers_options([], {"max_jobs": 0})
    with pytest.raises(ImproperlyConfigured, match=r"^runworker: 'max_jobs' must be int"):
        workers_options([], {"max_jobs": "3"})


@pytest.mark.parametrize(
    ("names", "given"),
    [(["alone", "mail"], {}), (["mail", "reports"], {"solo": True})],
)
def test_a_solo_worker_is_alone(profiles, names, given):
    profiles(alone={"solo": True}, mail={}, reports={})
    with pytest.raises(ImproperlyConfigured, match="a command of its own"):
        workers_options(names, given)
    assert workers_options(["alone"], {}) == [{"name": "alone", "solo": True}]


def test_a_profile_is_named_once(profiles):
    profiles(mail={})
    with pytest.raises(ImproperlyConfigured, match="each profile once"):
        workers_options(["mail", "mail"], {})
