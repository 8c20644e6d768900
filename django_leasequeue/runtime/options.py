"""What a worker is told: its options, and the refusal of those no worker could run with."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from django.core.exceptions import ImproperlyConfigured
from django.db import connections

from django_leasequeue.conf import BOUNDS, get_conf
from django_leasequeue.core.dialect import family_of
from django_leasequeue.core.lanes import parse_queues
from django_leasequeue.middleware.chain import get_chain
from django_leasequeue.registry import registry
from django_leasequeue.runtime.connections import bounds_for

__all__ = ["WorkerOptions", "shortest_lease"]


_LONG = 10 * 365 * 86_400
#: The largest values, of those that are settings as well the setting's.
_MOST = {
    **{name: BOUNDS[name.upper()][1] for name in ("grace", "kill_after", "poll_min", "poll_max")},
    "drain_wait": _LONG,
    "max_seconds": _LONG,
    "max_memory": 2**40,
}


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
    #: All in this process: handlers run in the thread that calls `turn`, one at a time.
    solo: bool = False
    #: Park jobs of types that this worker's code does not know, whatever UNKNOWN_JOB_TYPES says.
    handled_only: bool = False
    #: Children, and handlers that each runs side by side.
    processes: int = _setting("PROCESSES")
    threads: int = _setting("THREADS")
    #: From an interrupt to the kill, at most a sixth of the lease.
    kill_after: float = _setting("KILL_AFTER")
    drain: bool = False
    drain_wait: float = 60
    #: The worker ends after so many jobs, or seconds.
    max_jobs: int | None = None
    max_seconds: float | None = None
    #: MiB of resident memory: a child, or a solo worker, above it ends between jobs; 0 = off.
    max_memory: float = 0
    #: A child ends after so many jobs and is replaced; 0 = off.
    max_jobs_per_child: int = 0
    poll_min: float = _setting("POLL_MIN")
    poll_max: float = _setting("POLL_MAX")
    grace: float = _setting("GRACE")
    #: A callable that returns the next (job type, payload[, options]) to enqueue, or None; solo.
    source: Callable[[], Any] | None = None
    #: How children write the queue's log lines, "json" or "text"; None leaves it to the project.
    log_format: str | None = None

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
        self._check_limits()
        if not 0 < len(self.name) <= 100 or not self.name.isprintable():
            raise ImproperlyConfigured("--name must have 1 to 100 printable characters.")
        _check_longest(self.lease)
        _check_lease(shortest_lease(self.lease))
        _check_atomic(self.database, self.lease)
        self._check_processes()
        get_chain()  # with a middleware that cannot be built every attempt would fail

    def _check_limits(self) -> None:
        if self.max_jobs is not None and self.max_jobs < 1:
            raise ImproperlyConfigured("--max-jobs must be at least 1.")
        if self.max_seconds is not None and not self.max_seconds > 0:
            raise ImproperlyConfigured("--max-seconds must be above 0.")
        if not (self.max_memory >= 0 and self.max_jobs_per_child >= 0 and self.kill_after >= 0):
            raise ImproperlyConfigured(
                "--max-memory, --max-jobs-per-child and --kill-after must not be negative."
            )

        for name, most in _MOST.items():
            # No number of seconds beyond would go into a time.
            if (getattr(self, name) or 0) > most:
                raise ImproperlyConfigured(f"--{name.replace('_', '-')} must be at most {most:g}.")

    def _check_processes(self) -> None:
        if not (1 <= self.processes <= 1000 and 1 <= self.threads <= 1000):
            raise ImproperlyConfigured("--processes and --threads must be 1 to 1000.")
        if self.solo:
            return
        if self.source is not None:
            raise ImproperlyConfigured(
                "A source is the project's code, which the control process does not run: "
                "give the worker solo=True."
            )
        if family_of(connections[self.database]).in_memory(connections[self.database]):
            raise ImproperlyConfigured(
                "A database in memory is seen by one process only: use --solo."
            )


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
