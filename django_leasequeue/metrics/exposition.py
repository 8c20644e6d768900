"""The exposition: all metrics of a process as the text that Prometheus scrapes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from django.core.exceptions import ImproperlyConfigured

from django_leasequeue.metrics.families import FAMILIES
from django_leasequeue.metrics.gauges import Reading, gauge_families
from django_leasequeue.metrics.meter import Tallies
from django_leasequeue.metrics.tallies import gauge
from django_leasequeue.runtime.pulse import Pulse, not_ready
from django_leasequeue.version import __version__

__all__ = ["WorkerState", "database_families", "expose", "require_client", "worker_families"]


class WorkerState(NamedTuple):
    """How a worker is at a scrape."""

    pulse: Pulse
    held: int


def require_client() -> None:
    """Raise ImproperlyConfigured, saying what to install, without prometheus-client."""
    try:
        import prometheus_client  # noqa: F401
    except ImportError as error:
        raise ImproperlyConfigured(
            "Metrics need prometheus-client: install django-leasequeue[metrics]."
        ) from error


def expose(collect: Callable[[], Iterable[Any]], accept: str) -> tuple[bytes, str]:
    """Return what is collected in the format that the Accept header asks for, and its type."""
    from prometheus_client import CollectorRegistry
    from prometheus_client.exposition import choose_encoder

    class All:
        def collect(self) -> Iterable[Any]:
            return collect()

        def describe(self) -> Iterable[Any]:
            return ()

    registry = CollectorRegistry()
    registry.register(All())
    encode, content_type = choose_encoder(accept)
    return encode(registry), content_type


def worker_families(
    tallies: Tallies, states: Mapping[str, WorkerState], lines_dropped: int
) -> list[Any]:
    """Return what workers have counted, and how they are."""
    from prometheus_client.core import CounterMetricFamily

    dropped = FAMILIES["leasequeue_log_lines_dropped"]
    ready = [((name,), float(not not_ready([one.pulse]))) for name, one in states.items()]
    ages = [((name,), one.pulse.turned_ago) for name, one in states.items()]
    held = [((name,), float(one.held)) for name, one in states.items()]
    return [
        *tallies.collect(),
        CounterMetricFamily(dropped.name, dropped.help, value=lines_dropped),
        gauge(FAMILIES["leasequeue_worker_ready"], ready),
        gauge(FAMILIES["leasequeue_worker_loop_age_seconds"], ages),
        gauge(FAMILIES["leasequeue_worker_held_jobs"], held),
        _build_info(),
    ]


def _build_info() -> Any:
    """Return the metric that tells the version."""
    return gauge(FAMILIES["leasequeue_build_info"], [((__version__,), 1.0)])


def database_families(readings: Iterable[Reading]) -> list[Any]:
    """Return what the database has told of itself, for a process without workers."""
    return [*gauge_families(readings), _build_info()]
