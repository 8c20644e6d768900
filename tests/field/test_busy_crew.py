"""A crew that is never idle: claims ahead must not keep hooks and parked jobs from their turn."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from django_leasequeue.runtime import supply as supply_module
from django_leasequeue.runtime import worker as worker_module
from django_leasequeue.runtime.crew import Capacity
from django_leasequeue.runtime.worker import Worker

pytestmark = pytest.mark.usefixtures("queue_db")


def test_a_slot_becomes_free_once_a_second(monkeypatch):
    """Short jobs without end, of which some always wait: after a second no more are claimed.

    What waits for a free slot has its turn then, and claims ahead go on.
    """
    worker = Worker(solo=True)
    crew = SimpleNamespace(capacity=lambda: Capacity(0, 50), charges=["busy"], give=len)
    claims: list[tuple[float, int]] = []
    now = 100.0

    def take(connection: object, room: Capacity) -> list[str]:
        claims.append((now, room.free))
        return ["a charge"]

    supply = worker.supply
    monkeypatch.setattr(supply_module, "ticks", lambda: now)
    monkeypatch.setattr(supply, "_take", take)
    monkeypatch.setattr(supply, "_hand_over", lambda charges: None)
    monkeypatch.setattr(supply, "_crew", crew)
    try:
        supply._took_at = now
        for _tenth in range(30):
            worker._take_in()
            now += 0.1
        assert 10 <= len(claims) <= 11
        crew.capacity = lambda: Capacity(1, 50)
        worker._take_in()
        crew.capacity = lambda: Capacity(0, 50)
        worker._take_in()
        assert [free for _at, free in claims[-2:]] == [1, 0]
    finally:
        worker.close()


@pytest.mark.parametrize(
    ("occupied", "stopping", "lingers"),
    [(True, False, True), (False, False, False), (True, True, False)],
)
def test_words_of_children_that_have_work_are_read_together(
    monkeypatch, occupied, stopping, lingers
):
    """The first comes after one millisecond: control has a pass five after the last."""
    worker = Worker(solo=True)
    lingered: list[float] = []
    now = 100.0

    def wait(wakeup, seconds):
        nonlocal now
        now += 0.001
        if stopping:
            worker.stop()
        return False

    monkeypatch.setattr(worker_module, "ticks", lambda: now)
    monkeypatch.setattr(worker.wakeup, "wait", lingered.append)
    try:
        crew = SimpleNamespace(wait=wait, occupied=lambda seconds: occupied, charges=[])
        crew.close = lambda hard: None
        worker.crew = crew
        worker._turned_at = now
        worker._wait(1.0)
        assert lingered == ([pytest.approx(0.004)] if lingers else [])
    finally:
        worker.close()
