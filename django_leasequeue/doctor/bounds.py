"""What the leases leave room for: the database's waits, and transactions of one's own."""

from __future__ import annotations

from collections.abc import Iterator

from django.db import connections

from django_leasequeue.conf import get_conf
from django_leasequeue.doctor.case import Case
from django_leasequeue.doctor.findings import Finding, Kind
from django_leasequeue.runtime.connections import bounds_for
from django_leasequeue.runtime.options import shortest_lease

__all__ = ["autocommit", "leases", "lock_waits"]

TOO_SHORT = Kind(
    "leasequeue.E006",
    "bounds",
    "Give the job type, or LEASEQUEUE['LEASE'], a longer lease; a worker refuses to start.",
)
AUTOCOMMIT = Kind(
    "leasequeue.E007",
    "bounds",
    "Take AUTOCOMMIT out of the database's settings; a worker refuses to start.",
)
LOCK_WAIT = Kind(
    "leasequeue.I002",
    "bounds",
    "Bound it below the lease in the database's OPTIONS, so that a handler that waits for a lock "
    "gets an error instead of a lost lease: init_command on MySQL and MariaDB, "
    "'-c lock_timeout=3s' in options on PostgreSQL.",
)


def leases() -> Iterator[Finding]:
    """The shortest lease leaves no room for the database's waits."""
    conf = get_conf()
    shortest = shortest_lease(conf.LEASE)
    # Servers count some waits in whole seconds.
    longest = max(1.0, *bounds_for(shortest).values())
    if shortest < conf.MIN_LEASE or longest >= shortest:
        yield TOO_SHORT.found(
            f"The shortest lease is {shortest:g} s; MIN_LEASE is {conf.MIN_LEASE:g} s, and the "
            f"database's own waits may take {longest:g} s."
        )


def autocommit() -> Iterator[Finding]:
    """Nothing that a handler commits would be committed."""
    alias = get_conf().DATABASE
    if not connections[alias].settings_dict["AUTOCOMMIT"]:
        yield AUTOCOMMIT.found(f"DATABASES[{alias!r}] has AUTOCOMMIT off.")


def lock_waits(case: Case) -> Iterator[Finding]:
    """A handler's session may wait for a row lock longer than a lease lasts."""
    wait = case.server.lock_wait(case.variables)
    lease = shortest_lease(case.conf.LEASE)
    if wait is not None and wait >= lease:
        how_long = "without end" if wait == float("inf") else f"for {wait:g} s"
        yield LOCK_WAIT.found(
            f"The project's sessions wait for a row lock {how_long}; the shortest lease is "
            f"{lease:g} s."
        )
