"""Gauges of the database for a scrape: read when asked, kept for some seconds, never awaited long.

Each reading has a connection of its own whose waits are bounded by a second or two.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from contextlib import closing
from typing import Any, NamedTuple

from django_leasequeue.core.gauges import Gauges, QueueGauges, read_gauges
from django_leasequeue.metrics.families import FAMILIES
from django_leasequeue.metrics.tallies import gauge
from django_leasequeue.runtime.clock import ticks
from django_leasequeue.runtime.connections import open_control

__all__ = ["FRESH_SECONDS", "KEPT_SECONDS", "GaugeReader", "GaugeSource", "gauge_families"]

#: A reading answers scrapes for so long.
FRESH_SECONDS = 5.0
#: While the database is away the last reading is shown for so long.
KEPT_SECONDS = 60.0
#: A scrape waits so long for a reading that is under way.
_PATIENCE = 1.0
#: The connection's waits are a quarter of it.
_BOUND = 4.0
_END_SECONDS = 2.0


class Reading(NamedTuple):
    """What is known of a database: its gauges as of `read_at` ticks, and whether it answers."""

    alias: str
    gauges: Gauges | None = None
    read_at: float = 0.0
    up: bool = False
    tried_at: float = float("-inf")


class GaugeSource:
    """The gauges of one database, read in the calling thread."""

    def __init__(self, alias: str) -> None:
        self.last = Reading(alias)
        self._lock = threading.Lock()

    @property
    def due(self) -> bool:
        """Tell whether the last try is too old to answer with."""
        return ticks() - self.last.tried_at >= FRESH_SECONDS

    def read(self) -> Reading:
        """Return a reading, a new one if it is due and no other thread is at it; raises nothing."""
        if self.due and self._lock.acquire(blocking=False):
            try:
                self.last = self._read_now()
            finally:
                self._lock.release()
        return self.last

    def _read_now(self) -> Reading:
        try:
            with closing(open_control(self.last.alias, _BOUND)) as connection:
                gauges = read_gauges(connection)
        except Exception:  # noqa: BLE001  (whatever it is, it must not cost the other metrics)
            return self.last._replace(up=False, tried_at=ticks())
        now = ticks()
        return Reading(self.last.alias, gauges, now, up=True, tried_at=now)


class GaugeReader:
    """Reads in a thread of its own, so that whoever asks waits no longer than a second."""

    def __init__(self, alias: str) -> None:
        self._source = GaugeSource(alias)
        self._changed = threading.Condition()
        self._asked = self._stopping = False
        self._thread = threading.Thread(target=self._run, name="leasequeue-gauges", daemon=True)

    def start(self) -> None:
        """Start the thread; nothing is read before somebody asks."""
        self._thread.start()

    def stop(self) -> None:
        """End the thread; one that is in a statement may need a second for that."""
        with self._changed:
            self._stopping = True
            self._changed.notify_all()
        self._thread.join(_END_SECONDS)

    def read(self) -> Reading:
        """Return a reading: a new one if that takes no longer than a second, else the last."""
        with self._changed:
            if self._source.due and not self._stopping:
                self._asked = True
                self._changed.notify_all()
                self._changed.wait_for(lambda: not self._asked or self._stopping, _PATIENCE)
        return self._source.last

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._asked or self._stopping)
                if self._stopping:
                    return
            self._source.read()
            with self._changed:
                self._asked = False
                self._changed.notify_all()


def gauge_families(readings: Iterable[Reading]) -> list[Any]:
    """Return the gauges as prometheus-client has them; those that are too old are left out."""
    known = list(readings)
    shown = [(one, one.gauges) for one in known if one.gauges is not None and _is_recent(one)]
    figures: dict[str, list[tuple[tuple[str, ...], float]]] = {
        "database_up": [((one.alias,), float(one.up)) for one in known],
        "gauges_age_seconds": [((one.alias,), ticks() - one.read_at) for one, _ in shown],
        "gauges_complete": [((one.alias,), float(found.complete)) for one, found in shown],
        "pending_burials": [((one.alias,), found.pending_burials) for one, found in shown],
        "expired_leases": [((one.alias,), found.expired_leases) for one, found in shown],
    }
    for one, found in shown:
        for queue in found.queues:
            for name, value in _of_queue(queue).items():
                figures.setdefault(name, []).append(((one.alias, queue.queue), value))
    return [gauge(FAMILIES[f"leasequeue_{name}"], samples) for name, samples in figures.items()]


def _is_recent(reading: Reading) -> bool:
    return ticks() - reading.read_at < KEPT_SECONDS


def _of_queue(queue: QueueGauges) -> dict[str, float]:
    return {
        "queue_ready": queue.ready,
        "queue_scheduled": queue.scheduled,
        "queue_reserved": queue.reserved,
        "queue_dead": queue.dead,
        "queue_parked": queue.parked,
        "queue_oldest_ready_seconds": queue.oldest_ready,
        "queue_paused": float(queue.paused),
    }
