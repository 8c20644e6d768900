"""The meter: what each end of an attempt is counted as, under labels of bounded variety."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from django_leasequeue import job
from django_leasequeue.core.lease import Lease
from django_leasequeue.core.recover import Recovered
from django_leasequeue.core.settle import Ending, Settled, Verdict
from django_leasequeue.core.ticking import Ticked
from django_leasequeue.metrics.exposition import WorkerState, expose, worker_families
from django_leasequeue.metrics.families import FAMILIES
from django_leasequeue.metrics.meter import PrometheusMeter, Tallies
from django_leasequeue.outcomes import End, ErrorSummary, Outcome
from django_leasequeue.registry import registry
from django_leasequeue.runtime.charges import Ended
from django_leasequeue.runtime.meter import Meter
from django_leasequeue.runtime.pulse import Pulse
from django_leasequeue.statuses import Status

pytest.importorskip("prometheus_client")
from prometheus_client.parser import text_string_to_metric_families

PULSE = Pulse(0.5, started=True, stopping=False, reachable=True)


@pytest.fixture(autouse=True)
def _known():
    @job("meter.known")
    def handler() -> None:
        """A type that the code knows."""

    yield
    registry.remove("meter.known")


def ended(outcome: Outcome, job_type: str = "meter.known", *, cancelled: bool = False) -> Ended:
    claimed = SimpleNamespace(
        lease=Lease(1, b"t" * 16), job_type=job_type, attempt=1, max_attempts=5, crashes=0
    )
    charge = SimpleNamespace(job=claimed, hold=SimpleNamespace(cancelled=cancelled))
    return Ended(charge, outcome, 0.02)


def settled(one: Ended, verdict: Verdict, status: Status | None = None) -> Settled:
    return Settled(Ending(one.charge.job.lease, one.outcome), verdict, status)


def counted(act: Callable[[Meter], None]) -> dict[str, float]:
    """Return the samples above 0 that an act leaves, without buckets."""
    tallies = Tallies()
    act(PrometheusMeter(tallies, "w", lambda: None))
    text, _type = expose(lambda: worker_families(tallies, {"w": WorkerState(PULSE, 3)}, 0), "")
    return {
        name: sample.value
        for family in text_string_to_metric_families(text.decode())
        for sample in family.samples
        if sample.value
        and "bucket" not in sample.name
        and (name := shown(sample)).startswith(("claim", "attempts", "retries", "dead", "lease"))
        | name.startswith(("parked", "releases", "release_f", "recover", "burials", "database"))
        | name.startswith(("fatal", "handler_seconds_count", "settle_seconds_count"))
        | name.startswith(("schedule_lateness_seconds_count", "schedule_refusals"))
    }


def shown(sample: Any) -> str:
    labels = [value for name, value in sorted(sample.labels.items()) if name != "worker"]
    return " ".join([sample.name.removeprefix("leasequeue_"), *labels])


WROTE = {"settle_seconds_count": 1, "handler_seconds_count meter.known": 1}
RAN = {"handler_seconds_count meter.known": 1}
ERROR = ErrorSummary("E", "E")
TICKED = Ticked("nightly", "meter.known", "q", None, 0.5, 7)


@pytest.mark.parametrize(
    ("outcome", "verdict", "status", "samples"),
    [
        (
            Outcome(End.COMPLETED),
            Verdict.SETTLED,
            Status.DONE,
            {**WROTE, "attempts_total meter.known completed": 1},
        ),
        (
            Outcome(End.FAILED, error=ERROR),
            Verdict.SETTLED,
            Status.READY,
            {**WROTE, "attempts_total meter.known failed": 1, "retries_total meter.known": 1},
        ),
        (
            Outcome(End.CRASHED, error=ERROR),
            Verdict.SETTLED,
            Status.DEAD,
            {**WROTE, "attempts_total meter.known crashed": 1, "dead_total meter.known": 1},
        ),
        (
            Outcome(End.SNOOZED),
            Verdict.SETTLED,
            Status.READY,
            {**WROTE, "attempts_total meter.known snoozed": 1},
        ),
        (
            Outcome(End.RELEASED),
            Verdict.SETTLED,
            Status.READY,
            {**WROTE, "attempts_total meter.known released": 1, "releases_total yes": 1},
        ),
        (
            Outcome(End.RELEASED, started=False),
            Verdict.SETTLED,
            Status.READY,
            {"releases_total no": 1},
        ),
        (
            Outcome(End.RELEASED, started=False),
            Verdict.LOST,
            None,
            {"release_failures_total lost": 1},
        ),
        (
            Outcome(End.PARKED, started=False),
            Verdict.SETTLED,
            Status.PARKED,
            {"settle_seconds_count": 1, "parked_total meter.known": 1},
        ),
        (
            Outcome(End.COMPLETED),
            Verdict.LOST,
            None,
            {**RAN, "lease_losses_total meter.known": 1},
        ),
    ],
    ids=lambda value: value.end.value if isinstance(value, Outcome) else None,
)
def test_an_end_is_counted_as(outcome, verdict, status, samples):
    one = ended(outcome)
    assert counted(lambda meter: meter.settled(one, settled(one, verdict, status), 0.01)) == samples


def test_a_cancelled_job_is_no_lost_lease():
    one = ended(Outcome(End.COMPLETED), cancelled=True)
    found = counted(lambda meter: meter.settled(one, settled(one, Verdict.LOST), 0.01))
    assert found == {**RAN, "attempts_total meter.known cancelled": 1}


def test_a_type_that_the_code_does_not_know_is_other():
    def act(meter: Meter) -> None:
        for name in ("made up 1", "made up 2"):
            one = ended(Outcome(End.REJECTED, error=ERROR), name)
            meter.claimed([one.charge], 0.1)
            meter.settled(one, settled(one, Verdict.SETTLED, Status.DEAD), 0.01)

    found = counted(act)
    assert found["claims_total other"] == found["dead_total other"] == 2
    assert not [name for name in found if "made up" in name]


def test_the_rest():
    dead = Recovered(1, "meter.known", "q", 1, "w", Status.DEAD)
    unstarted = ended(Outcome(End.RELEASED, started=False))

    def act(meter: Meter) -> None:
        meter.recovered([dead, dead._replace(status=Status.READY)])
        meter.buried(ended(Outcome(End.FAILED, error=ERROR)))
        meter.left(unstarted, unstarted=True)
        meter.left(ended(Outcome(End.COMPLETED)), unstarted=False)
        without = TICKED._replace(job_id=None)
        meter.ticked([TICKED, without, without._replace(error="x")])
        meter.lost_database()
        meter.failed()

    assert counted(act) == {
        "recoveries_total dead": 1,
        "recoveries_total ready": 1,
        "dead_total meter.known": 1,
        "burials_total meter.known failed": 1,
        "release_failures_total not_reached": 1,
        "lease_losses_total meter.known": 1,
        "schedule_lateness_seconds_count": 1,
        "schedule_refusals_total": 1,
        "database_outages_total": 1,
        "fatal_errors_total": 1,
    }


def test_a_meter_has_all_that_a_worker_tells_of():
    told = {name for name in vars(Meter) if not name.startswith("_")}
    assert told <= set(vars(PrometheusMeter))


def test_buckets_and_labels_are_as_prometheus_has_them():
    tallies = Tallies()
    meter = PrometheusMeter(tallies, "w", lambda: None)
    for seconds in (0.0005, 0.3, 99999):
        meter.claimed([], seconds)
    text, content_type = expose(lambda: worker_families(tallies, {}, 0), "")
    assert content_type.startswith("text/plain")
    (family,) = [
        one
        for one in text_string_to_metric_families(text.decode())
        if one.name == "leasequeue_claim_seconds"
    ]
    buckets = {s.labels["le"]: s.value for s in family.samples if s.name.endswith("_bucket")}
    assert (buckets["0.001"], buckets["0.5"], buckets["3600.0"], buckets["+Inf"]) == (1, 2, 2, 3)
    text, content_type = expose(list, "application/openmetrics-text; version=1.0.0")
    assert text.endswith(b"# EOF\n")
    assert "openmetrics" in content_type


def test_every_family_says_what_it_is():
    for name, family in FAMILIES.items():
        assert name.startswith("leasequeue_") and family.help.endswith((".", ".."))
        assert family.kind in ("counter", "gauge", "histogram")
        assert not name.endswith("_total")
