"""Tallies: counters and histograms that threads may add to, and a scrape reads.

Not prometheus-client's own: those write files when a web server's environment says
PROMETHEUS_MULTIPROC_DIR, and show when each series was made, as one more series.
"""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Any

from django_leasequeue.metrics.families import Family

__all__ = ["Counter", "Histogram", "gauge"]

#: Upper bounds in seconds: from a handler of a millisecond to one of an hour.
BUCKETS = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3600)


class Counter:
    """Counts by label values, given in the order of the family's labels."""

    def __init__(self, family: Family) -> None:
        self._family = family
        self._values: dict[tuple[str, ...], float] = {}
        self._lock = threading.Lock()

    def add(self, *labels: str, by: float = 1) -> None:
        """Count `by` more."""
        with self._lock:
            self._values[labels] = self._values.get(labels, 0) + by

    def collect(self) -> Any:
        """Return it as prometheus-client has it."""
        from prometheus_client.core import CounterMetricFamily

        family = CounterMetricFamily(
            self._family.name, self._family.help, labels=self._family.labels
        )
        with self._lock:
            values = dict(self._values)
        for labels, value in values.items():
            family.add_metric(labels, value)
        return family


class Histogram:
    """Sorts seconds into BUCKETS, by label values."""

    def __init__(self, family: Family) -> None:
        self._family = family
        self._values: dict[tuple[str, ...], tuple[list[int], list[float]]] = {}
        self._lock = threading.Lock()

    def observe(self, *labels: str, seconds: float) -> None:
        """Count one more that took `seconds`."""
        with self._lock:
            if labels not in self._values:
                self._values[labels] = [0] * (len(BUCKETS) + 1), [0.0]
            counts, total = self._values[labels]
            counts[bisect_left(BUCKETS, seconds)] += 1
            total[0] += seconds

    def collect(self) -> Any:
        """Return it as prometheus-client has it."""
        from prometheus_client.core import HistogramMetricFamily

        family = HistogramMetricFamily(
            self._family.name, self._family.help, labels=self._family.labels
        )
        for labels, counts, total in self._copied():
            bounds = [*(str(float(bound)) for bound in BUCKETS), "+Inf"]
            buckets = list(zip(bounds, accumulate(counts), strict=True))
            family.add_metric(labels, buckets=buckets, sum_value=total)
        return family

    def _copied(self) -> Iterator[tuple[tuple[str, ...], list[int], float]]:
        with self._lock:
            copied = [(labels, list(c), t[0]) for labels, (c, t) in self._values.items()]
        yield from copied


def gauge(family: Family, samples: Sequence[tuple[Sequence[str], float]]) -> Any:
    """Return a gauge with these samples, as prometheus-client has it."""
    from prometheus_client.core import GaugeMetricFamily

    made = GaugeMetricFamily(family.name, family.help, labels=family.labels)
    for labels, value in samples:
        made.add_metric(labels, value)
    return made
