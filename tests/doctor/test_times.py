"""Time zones and clocks."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from django_leasequeue.doctor import times
from tests.doctor.asking import ids, only
from tests.faults.zones import Zones, in_zones


def test_sound_times(case):
    sound = case()
    assert list(times.zone(sound)) == []
    assert list(times.clocks(sound)) == []


@pytest.mark.only_on("mariadb", "mysql", "postgres")
def test_a_server_in_another_zone(case, settings):
    with in_zones(Zones("+05:30", use_tz=True, time_zone="UTC"), settings):
        there = case()
        found = only(times.zone, there)
        assert ids([found]) == ["I003"]
        assert list(times.clocks(there)) == []


@pytest.mark.only_on("mariadb", "mysql")
def test_zone_tables(case, settings):
    there = case()
    knows = there.server.knows_zones(there.connection)
    settings.USE_TZ = True
    assert ids(times.zone_tables(there)) == ([] if knows else ["I004"])
    settings.USE_TZ = False
    assert list(times.zone_tables(there)) == []


@pytest.mark.parametrize(
    ("seconds", "expected"), [(600, "behind"), (-600, "ahead of"), (4, None), (-4, None)]
)
def test_clocks_that_differ(case, monkeypatch, seconds, expected):
    class Off(datetime):
        @classmethod
        def now(cls, tz=None):
            return datetime.now(tz) + timedelta(seconds=seconds)

    monkeypatch.setattr(times, "datetime", Off)
    found = list(times.clocks(case()))
    assert ids(found) == (["W012"] if expected else [])
    assert not expected or f"s {expected} this host's" in found[0].what
