"""The LEASEQUEUE setting: every edge value is an error that names the setting (case I14)."""

from __future__ import annotations

import math

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


@pytest.mark.parametrize("name", sorted(set(BOUNDS) - {"GRACE", "DATABASE_OUTAGE_LIMIT"}))
def test_zero_is_no_amount(settings, name):
    with pytest.raises(ImproperlyConfigured, match=name):
        conf(settings, **{name: 0})


@pytest.mark.parametrize("name", ["MAX_ATTEMPTS", "MAX_CRASHES", "MAX_PAYLOAD_BYTES"])
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
