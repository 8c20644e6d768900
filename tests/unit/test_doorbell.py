"""The doorbell rings for the worker's own queues, and not again at once when that was vain."""

from __future__ import annotations

import pytest

from django_leasequeue.runtime import doorbell
from django_leasequeue.runtime.doorbell import Doorbell

SESSION = None  # the source below asks no database


class Source:
    def __init__(self):
        self.heard = set()
        self.closed = False

    def fileno(self, connection):
        return 7

    def read(self, connection):
        heard, self.heard = self.heard, set()
        return heard

    def close(self):
        self.closed = True


@pytest.fixture
def clock(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(doorbell, "ticks", lambda: now[0])
    return now


@pytest.fixture
def source():
    return Source()


@pytest.mark.parametrize(
    ("queues", "heard", "rings"),
    [
        (("*",), {"mail"}, True),
        (("*",), set(), False),
        (("mail", "report"), {"report", "other"}, True),
        (("mail", "report"), {"other"}, False),
        (("mail",), {"*"}, True),
    ],
)
def test_for_whom_it_rings(clock, source, queues, heard, rings):
    bell = Doorbell(source, queues, listens=False)
    source.heard = heard
    assert bell.rings(SESSION) is rings
    assert bell.rings(SESSION) is False


def test_what_came_before_the_look_does_not_ring_after_it(clock, source):
    bell = Doorbell(source, ("*",), listens=False)
    source.heard = {"mail"}
    assert bell.before_look(SESSION)  # the lanes known may not be all
    assert not bell.before_look(SESSION)
    bell.after_look(found=False)
    clock[0] += 0.06
    assert bell.fileno(SESSION) == 7
    assert not bell.rings(SESSION)


def test_a_look_after_a_ring_is_one_everywhere(clock, source):
    bell = Doorbell(source, ("mail",), listens=False)
    source.heard = {"mail"}
    assert bell.rings(SESSION)
    source.heard = {"mail"}
    assert not bell.before_look(SESSION)
    bell.after_look(found=True)
    source.heard = {"other"}
    assert not bell.before_look(SESSION)


def test_it_is_deaf_for_a_while_after_a_vain_ring_alone(clock, source):
    bell = Doorbell(source, ("*",), listens=False)
    for found in (True, False):
        source.heard = {"mail"}
        assert bell.rings(SESSION)
        bell.before_look(SESSION)
        bell.after_look(found=found)
        assert (bell.fileno(SESSION) is None) is not found
        assert bell.deaf_seconds() == pytest.approx(0 if found else 0.05)
    source.heard = {"mail"}
    assert not bell.rings(SESSION)
    clock[0] += 0.06
    assert bell.fileno(SESSION) == 7
    assert bell.rings(SESSION)  # it was not forgotten meanwhile
    bell.close()
    assert source.closed


def test_after_a_long_look_in_vain_it_is_deaf_for_longer(clock, source):
    bell = Doorbell(source, ("*",), listens=False)
    source.heard = {"mail"}
    assert bell.rings(SESSION)
    bell.before_look(SESSION)
    clock[0] += 0.2
    bell.after_look(found=False)
    assert bell.deaf_seconds() == pytest.approx(0.6)
