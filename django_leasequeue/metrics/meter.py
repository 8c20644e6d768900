"""The meter that counts for Prometheus: one for each worker, sharing the process's tallies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from django_leasequeue.core.recover import Recovered
from django_leasequeue.core.settle import Settled, Verdict
from django_leasequeue.core.ticking import Ticked
from django_leasequeue.metrics.families import FAMILIES
from django_leasequeue.metrics.tallies import Counter, Histogram
from django_leasequeue.outcomes import End
from django_leasequeue.registry import registry
from django_leasequeue.runtime.charges import Charge, Ended
from django_leasequeue.runtime.meter import Meter
from django_leasequeue.runtime.settlements import ack_of
from django_leasequeue.statuses import Status

__all__ = ["PrometheusMeter", "Tallies"]

_OTHER = "other"
_RETRIED = (End.FAILED, End.TIMED_OUT, End.CRASHED)


class Tallies:
    """The counters and histograms of a process."""

    def __init__(self) -> None:
        self.counters: dict[str, Counter] = {}
        self.histograms: dict[str, Histogram] = {}
        for name, family in FAMILIES.items():
            if family.kind == "counter" and "worker" in family.labels:
                self.counters[name.removeprefix("leasequeue_")] = Counter(family)
            elif family.kind == "histogram":
                self.histograms[name.removeprefix("leasequeue_")] = Histogram(family)

    def collect(self) -> list[Any]:
        """Return all of them, as prometheus-client has them."""
        counters = [counter.collect() for counter in self.counters.values()]
        return counters + [histogram.collect() for histogram in self.histograms.values()]


class PrometheusMeter(Meter):
    """Counts what one worker tells, under the label `worker`; `on_turn` is called at each pass."""

    def __init__(self, tallies: Tallies, worker: str, on_turn: Callable[[], None]) -> None:
        self._worker = worker
        self._counters = tallies.counters
        self._histograms = tallies.histograms
        self._on_turn = on_turn
        # A counter that is there from the start shows its first rise, too.
        for job_type in (*(kind.name for kind in registry), _OTHER):
            for name in ("dead", "retries", "lease_losses"):
                self._add(name, job_type, by=0)
        for name in ("database_outages", "fatal_errors", "schedule_refusals"):
            self._add(name, by=0)
        for reason in ("lost", "not_reached"):
            self._add("release_failures", reason, by=0)
        for status in (Status.READY, Status.DEAD):
            self._add("recoveries", status.value, by=0)

    def turned(self) -> None:
        self._on_turn()

    def claimed(self, charges: Sequence[Charge], seconds: float) -> None:
        self._histograms["claim_seconds"].observe(self._worker, seconds=seconds)
        for charge in charges:
            self._add("claims", _type(charge.job.job_type))

    def settled(self, ended: Ended, settled: Settled, seconds: float) -> None:
        outcome, job_type = settled.ending.outcome, _type(ended.charge.job.job_type)
        is_written = settled.verdict is Verdict.SETTLED
        if outcome.end is End.RELEASED and not outcome.started:
            if is_written:
                self._add("releases", "no")
            else:
                self._add("release_failures", "lost")
            return
        if is_written:
            self._histograms["settle_seconds"].observe(self._worker, seconds=seconds)
        if outcome.end is End.PARKED:
            if is_written:
                self._add("parked", job_type)
            return
        self._histograms["handler_seconds"].observe(self._worker, job_type, seconds=ended.seconds)
        if is_written:
            self._recorded(outcome.end, job_type, ack_of(ended, settled).status)
        elif ended.charge.hold.cancelled:
            self._add("attempts", job_type, End.CANCELLED.value)
        else:
            self._add("lease_losses", job_type)

    def _recorded(self, end: End, job_type: str, status: Status | None) -> None:
        self._add("attempts", job_type, end.value)
        if end is End.RELEASED:
            self._add("releases", "yes")
        if status is Status.DEAD:
            self._add("dead", job_type)
        elif status is Status.READY and end in _RETRIED:
            self._add("retries", job_type)

    def buried(self, ended: Ended) -> None:
        self._add("burials", _type(ended.charge.job.job_type), ended.outcome.end.value)

    def left(self, ended: Ended, *, unstarted: bool) -> None:
        if unstarted:
            self._add("release_failures", "not_reached")
        else:
            self._add("lease_losses", _type(ended.charge.job.job_type))

    def recovered(self, jobs: Sequence[Recovered]) -> None:
        for job in jobs:
            self._add("recoveries", job.status.value)
            if job.status is Status.DEAD:
                self._add("dead", _type(job.job_type))

    def ticked(self, ticked: Sequence[Ticked]) -> None:
        for one in ticked:
            if one.error:
                self._add("schedule_refusals")
            elif one.job_id is not None:
                lateness = self._histograms["schedule_lateness_seconds"]
                lateness.observe(self._worker, seconds=one.late)

    def lost_database(self) -> None:
        self._add("database_outages")

    def failed(self) -> None:
        self._add("fatal_errors")

    def _add(self, name: str, *labels: str, by: float = 1) -> None:
        self._counters[name].add(self._worker, *labels, by=by)


def _type(name: str) -> str:
    """Return a label of bounded variety: a row may name whatever somebody wrote there."""
    return name if registry.get(name) is not None else _OTHER
