"""A worker whose row cannot be written says so once, and tries again from time to time."""

from __future__ import annotations

import pytest

from django_leasequeue.core.presence import Presence
from django_leasequeue.models import Worker
from django_leasequeue.runtime import notices
from django_leasequeue.runtime.presence import Attendance
from tests.faults import Fault, broken, watching

REFUSED = {"mysql": 1142, "postgresql": "42501", "sqlite": "attempt to write a readonly database"}
PRESENCE = Presence("w:host:1:ab", "host", 1, "0", ("*",), 1)


@pytest.fixture
def times(monkeypatch):
    """A clock that a test moves."""
    now = [1000.0]
    monkeypatch.setattr(notices, "ticks", lambda: now[0])
    return now


def test_one_warning_and_a_try_a_minute(connection, times):
    attended = Attendance(lambda: PRESENCE, lambda: None)
    fault = Fault(REFUSED[connection.vendor], times=100, match=lambda sql: "_worker" in sql)
    with watching() as seen:
        with broken(connection, fault):
            for _ in range(100):
                attended.show(connection)
                times[0] += 2
        assert len(seen.named("presence_refused")) == 1
        assert fault.fired == 4  # in 200 seconds, at 0, 60, 120 and 180
        times[0] += 60
        attended.show(connection)
        assert Worker.objects.get().stopped_at is None
        attended.leave(connection)
        assert Worker.objects.get().stopped_at is not None


def test_a_lost_session_is_the_renewers_business(connection, times):
    """It reconnects; the row is due again five seconds later."""
    if connection.vendor == "sqlite":
        pytest.skip("has no session to lose")
    lost = "57P01" if connection.vendor == "postgresql" else 2006
    attended = Attendance(lambda: PRESENCE, lambda: None)
    with broken(connection, Fault(lost)), pytest.raises(Exception, match="injected"):
        attended.show(connection)
    connection.close()
    times[0] += 5
    attended.show(connection)
    assert Worker.objects.get().name == PRESENCE.name
