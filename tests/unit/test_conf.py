"""The LEASEQUEUE setting: every edge value is an error that names the setting (case I14)."""

from __future__ import annotations

import math
from datetime import timedelta

import pytest
from django.core.exceptions import ImproperlyConfigured

from django_leasequeue.conf import BOUNDS, Conf, get_conf
from django_leasequeue.retry import Exponential, Fixed


def conf(settings, **values: object) -> Conf:
    settings.LEASEQUEUE = values
    return get_conf()


def test_the_defaults_of_the_design(settings):
    defaults = conf(settings)
    assert (defaults.DATABASE, defaults.LEASE, defaults.MIN_LEASE) == ("default", 60, 5)
    assert (defaults.MAX_ATTEMPTS, defaults.MAX_CRASHES) == (5, 3)
    assert Exponential() == defaults.BACKOFF
    assert defaults.ERROR_DETAIL == "class"
    assert (defaults.TIMEOUT, defaults.KILL_AFTER) == (None, 5)
    assert (defaults.PROCESSES, defaults.THREADS, defaults.WORKERS) == (1, 1, {})
    del settings.LEASEQUEUE
    assert get_conf() == defaults


@pytest.mark.parametrize("name", BOUNDS)
@pytest.mark.parametrize(
    "value",
    ["5", None, True, math.nan, math.inf, -1, 10**12, pytest.param(10**400, id="huge"), [5]],
)
def test_a_number_that_is_none(settings, name, value):
    with pytest.raises(ImproperlyConfigured, match=name):
        conf(settings, **{name: value})


#: Where 0 means "at once".
MAY_BE_ZERO = {"GRACE", "KILL_AFTER", "DATABASE_OUTAGE_LIMIT"}


@pytest.mark.parametrize("name", sorted(set(BOUNDS) - MAY_BE_ZERO))
def test_zero_is_no_amount(settings, name):
    with pytest.raises(ImproperlyConfigured, match=name):
        conf(settings, **{name: 0})


@pytest.mark.parametrize("name", sorted(MAY_BE_ZERO))
def test_zero_where_it_means_at_once(settings, name):
    assert getattr(conf(settings, **{name: 0}), name) == 0


@pytest.mark.parametrize("value", [None, 0.5, 90])
def test_a_time_limit_or_none(settings, value):
    limit = conf(settings, TIMEOUT=value).TIMEOUT
    assert limit == value


@pytest.mark.parametrize("value", ["5", True, math.nan, math.inf, 0, -1, 10**12, timedelta(1)])
def test_a_time_limit_that_is_none(settings, value):
    with pytest.raises(ImproperlyConfigured, match="TIMEOUT"):
        conf(settings, TIMEOUT=value)


@pytest.mark.parametrize(
    "name", ["MAX_ATTEMPTS", "MAX_CRASHES", "MAX_PAYLOAD_BYTES", "PROCESSES", "THREADS"]
)
def test_whole_numbers(settings, name):
    with pytest.raises(ImproperlyConfigured, match="whole number"):
        conf(settings, **{name: 5.5})


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({"LEASE": 4}, "MIN_LEASE"),
        ({"LEASE": 60, "MIN_LEASE": 61}, "MIN_LEASE"),
        ({"POLL_MIN": 2, "POLL_MAX": 1}, "POLL_MAX"),
        ({"ERROR_DETAIL": "all"}, "ERROR_DETAIL"),
        ({"DATABASE": "nowhere"}, "nowhere"),
        ({"DATABASE": None}, "DATABASE"),
        ({"BACKOFF": 5}, "BACKOFF"),
        ({"LEASES": 60}, "Unknown LEASEQUEUE setting: 'LEASES'"),
        ({"lease": 60}, "Unknown"),
    ],
)
def test_values_that_do_not_go_together(settings, values, says):
    with pytest.raises(ImproperlyConfigured, match=says):
        conf(settings, **values)


@pytest.mark.parametrize(
    ("workers", "says"),
    [
        (None, "must be a dictionary of profiles"),
        (["mail"], "must be a dictionary of profiles"),
        ({"mail": "mail,urgent"}, r"\['WORKERS'\]\['mail'\] must be a dictionary"),
        ({"mail": None}, r"\['WORKERS'\]\['mail'\] must be a dictionary"),
        ({"": {}}, "1 to 100 printable characters, unlike ''"),
        ({"m" * 101: {}}, "1 to 100 printable characters"),
        ({"a\nb": {}}, "1 to 100 printable characters"),
        ({1: {}}, "1 to 100 printable characters, unlike 1"),
    ],
)
def test_profiles_are_dictionaries_by_name(settings, workers, says):
    with pytest.raises(ImproperlyConfigured, match=says):
        conf(settings, WORKERS=workers)


@pytest.mark.parametrize("value", [None, [], "LEASE", 5])
def test_the_setting_is_a_dictionary(settings, value):
    settings.LEASEQUEUE = value
    with pytest.raises(ImproperlyConfigured, match="must be a dictionary"):
        get_conf()


@pytest.mark.parametrize(
    "value", [Fixed(7), "tests.unit.test_conf.SEVEN", "tests.unit.test_conf.Seven", lambda e, c: 7]
)
def test_ways_to_give_a_backoff(settings, value):
    backoff = conf(settings, BACKOFF=value).BACKOFF
    assert backoff(None, None) == 7 if callable(backoff) else backoff.delay_for(1) == 7


SEVEN = Fixed(7)


class Seven:
    def delay_for(self, attempt):
        return 7


def test_a_changed_setting_is_read_again(settings):
    assert conf(settings, MAX_ATTEMPTS=7).MAX_ATTEMPTS == 7
    assert conf(settings, MAX_ATTEMPTS=8).MAX_ATTEMPTS == 8
