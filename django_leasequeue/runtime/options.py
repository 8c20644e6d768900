"""What a worker is told: its options, and the refusal of those no worker could run with."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from django.core.exceptions import ImproperlyConfigured
from django.db import connections

from django_leasequeue.conf import BOUNDS, get_conf
from django_leasequeue.core.dialect import family_of
from django_leasequeue.core.lanes import parse_queues
from django_leasequeue.registry import registry
from django_leasequeue.runtime.connections import bounds_for

__all__ = ["WorkerOptions", "shortest_lease"]


def _setting(name: str) -> Any:
    """Return a dataclass field whose default is a LEASEQUEUE setting."""
    return field(default_factory=lambda: getattr(get_conf(), name))


@dataclass(frozen=True, slots=True)
class WorkerOptions:
    """How a worker works; what is left out is as the settings say. Times are seconds.

    Raises ImproperlyConfigured for values that no worker could run with.
    """

    queues: str | Iterable[str] = "*"
    database: str = _setting("DATABASE")
    lease: float = _setting("LEASE")
    name: str = "worker"
    drain: bool = False
    drain_wait: float = 60
    max_jobs: int | None = None
    poll_min: float = _setting("POLL_MIN")
    poll_max: float = _setting("POLL_MAX")
    grace: float = _setting("GRACE")

    def __post_init__(self) -> None:
        if self.database not in connections:
            raise ImproperlyConfigured(f"{self.database!r} is no alias in DATABASES.")
        _check_transactions(self.database)
        try:
            parse_queues(self.queues)
        except ValueError as error:
            raise ImproperlyConfigured(f"--queues: {error}.") from None
        if not 0 < self.poll_min <= self.poll_max:
            raise ImproperlyConfigured("--poll-min must be above 0 and not above --poll-max.")
        if not (self.grace >= 0 and self.drain_wait >= 0):  # NaN as well
            raise ImproperlyConfigured("--grace and --drain-wait must not be negative.")
        if self.max_jobs is not None and self.max_jobs < 1:
            raise ImproperlyConfigured("--max-jobs must be at least 1.")
        if not 0 < len(self.name) <= 100:
            raise ImproperlyConfigured("--name must have 1 to 100 characters.")
        _check_longest(self.lease)
        _check_lease(shortest_lease(self.lease))
        _check_atomic(self.database, self.lease)


def _check_transactions(database: str) -> None:
    """Refuse connections on which a handler's commit would not be a commit."""
    connection = connections[database]
    if not connection.settings_dict["AUTOCOMMIT"]:
        raise ImproperlyConfigured(
            f"DATABASES[{database!r}] has AUTOCOMMIT off: nothing that a handler commits would be "
            "committed. Give the worker settings with AUTOCOMMIT on."
        )
    if connection.in_atomic_block:
        raise ImproperlyConfigured(
            "The worker was started inside a transaction: it would see an old state for ever and "
            "commit nothing. Start it outside atomic()."
        )


def _check_atomic(database: str, lease: float) -> None:
    """Refuse atomic handlers that could hold up the renewal of their own lease."""
    if not family_of(connections[database]).one_writer:
        return
    for kind in registry:
        if kind.atomic and (kind.timeout is None or kind.timeout >= (kind.lease or lease)):
            raise ImproperlyConfigured(
                f"{kind.name}: with atomic=True on this database no lease can be renewed while the "
                f"handler runs. Give it a timeout below its lease ({kind.lease or lease:g} s)."
            )


def shortest_lease(lease: float) -> float:
    """Return the shortest lease that the worker's claims can have: the bounds follow it."""
    return min([lease, *(kind.lease for kind in registry if kind.lease)])


def _check_longest(lease: float) -> None:
    """Refuse a lease that the database could not add to a time: no claim would be possible."""
    longest = BOUNDS["LEASE"][1]
    for name, seconds in [("--lease", lease), *((kind.name, kind.lease) for kind in registry)]:
        if seconds is not None and not seconds <= longest:
            raise ImproperlyConfigured(
                f"{name}: a lease is at most {longest:g} s, not {seconds:g} s."
            )


def _check_lease(shortest: float) -> None:
    """Refuse leases that the database's own waits could outlast."""
    min_lease = get_conf().MIN_LEASE
    if shortest < min_lease:
        raise ImproperlyConfigured(
            f"A lease of {shortest:g} s is below LEASEQUEUE['MIN_LEASE'] ({min_lease:g} s): "
            "the database's own waits would outlast it."
        )
    # Servers count some waits in whole seconds, so none can be shorter than one.
    if max(1.0, *bounds_for(shortest).values()) >= shortest:
        raise ImproperlyConfigured(
            f"A lease of {shortest:g} s leaves no room for the database's own waits."
        )
