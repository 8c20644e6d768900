"""LEASEQUEUE["RETENTION"]: what it says, and that every wrong value is an error that names it."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.core.exceptions import ImproperlyConfigured

from django_leasequeue.conf import get_conf
from django_leasequeue.retention import retention_of
from django_leasequeue.statuses import Status

DAY = 86_400.0


def test_what_nothing_says():
    found = retention_of({})
    assert not any(found.names(status) for status in Status)
    assert (found.workers, found.bulk_runs) == (7 * DAY, 90 * DAY)


def test_seconds_timedeltas_and_none():
    found = retention_of(
        {
            "done": timedelta(days=2),
            "dead": None,
            "workers": 60,
            "bulk_runs": None,
            "types": {"a": {"done": None}, "b": {"done": 0, "dead": 1.5}},
        }
    )
    assert found.jobs == {"done": 2 * DAY, "dead": None}
    assert found.types_with_ages(Status.DONE) == {"a": None, "b": 0.0}
    assert found.types_with_ages(Status.DEAD) == {"b": 1.5}
    assert [found.names(Status(name)) for name in ("done", "dead", "cancelled")] == [
        True,
        True,
        False,
    ]
    assert (found.workers, found.bulk_runs) == (60.0, None)


@pytest.mark.parametrize(
    ("value", "named"),
    [
        ([], "dictionary"),
        ({"ready": 1}, "'ready' is none of"),
        ({"reserved": DAY}, "never pruned"),
        ({"done": "30d"}, r"\['done'\]"),
        ({"done": True}, "seconds or a timedelta"),
        ({"done": -1}, "between"),
        ({"done": float("nan")}, "between"),
        ({"done": 10**400}, "between"),
        ({"workers": timedelta(days=-1)}, r"\['workers'\]"),
        ({"types": ["a"]}, r"\['types'\] must be a dictionary"),
        ({"types": {"a": 30}}, r"\['types'\]\['a'\] must be a dictionary"),
        ({"types": {"a": {"parked": 1}}}, "'parked' is none of done, cancelled, dead"),
        ({"types": {"a": {"workers": 1}}}, "'workers' is none of"),
        ({"types": {"a": {"done": "1"}}}, r"\['types'\]\['a'\]\['done'\]"),
    ],
)
def test_what_is_wrong_is_named(settings, value, named):
    settings.LEASEQUEUE = {"RETENTION": value}
    with pytest.raises(ImproperlyConfigured, match=f"RETENTION.*{named}"):
        get_conf()
