"""Pickup: from the return of enqueue(), outside a transaction, to the handler's first line."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from statistics import median

from django.conf import settings
from django.test import override_settings

from django_leasequeue import enqueue
from tests.benchmarks.machine import percentile
from tests.benchmarks.rounds import Bench, Bound, Contestant, Scenario
from tests.benchmarks.running import finish, running_worker

BUSY_PROBES = 30
IDLE_PROBES = 9
#: Nothing reads the probe's row for so long: the worker has the database for itself.
_QUIET = 0.7


@dataclass
class Pickup:
    """So many jobs for an idle child, `pause` seconds after one another."""

    bench: Bench
    probes: int
    pause: float
    settings: dict[str, object] = field(default_factory=dict)

    def __call__(self) -> dict[str, float]:
        """Return the median and the 95th percentile in milliseconds."""
        here = override_settings(LEASEQUEUE={**settings.LEASEQUEUE, **self.settings})
        with running_worker(self.bench, self.settings), here:
            found = [self._probe(n) for n in range(self.probes)]
        return {"p50": median(found), "p95": percentile(found, 95)}

    def _probe(self, n: int) -> float:
        # Not in step with the worker's own waits.
        time.sleep(self.pause * (0.9 + 0.2 * n / self.probes))
        job = enqueue("bench.clock", {"n": n})
        returned = time.time()
        done = finish(job.pk, min(_QUIET, self.bench.silence))
        assert done.result is not None
        return max(0.0, (float(done.result) - returned) * 1000)


def busy(bench: Bench) -> dict[str, Contestant]:
    """Return probes at one a second: as it is by default, and with each way of being woken."""
    pause = min(0.3, bench.silence)
    probes = BUSY_PROBES if bench.silence >= 1 else 3
    found: dict[str, Contestant] = {"polling": Pickup(bench, probes, pause)}
    for name in ("nudge", "notify") if bench.kind == "postgres" else ("nudge",):
        found[name] = Pickup(bench, probes, pause, {"WAKEUP": name})
    return found


def idle(bench: Bench) -> dict[str, Contestant]:
    """Return probes after a silence each."""
    return {"polling": Pickup(bench, IDLE_PROBES if bench.silence >= 1 else 2, bench.silence)}


SCENARIOS = (
    Scenario(
        name="pickup-busy",
        title="Pickup while a job arrives each second",
        unit="ms",
        contestants=busy,
        bounds=(Bound("polling, p50", 60), Bound("nudge, p50", 20), Bound("notify, p50", 10)),
        rounds=1,
    ),
    Scenario(
        name="pickup-idle",
        title="Pickup after a minute's silence",
        unit="ms",
        contestants=idle,
        bounds=(Bound("polling, p50", 600),),
        rounds=1,
    ),
)
