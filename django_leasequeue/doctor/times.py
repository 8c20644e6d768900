"""Time zones and clocks. The queue's times are UTC by the database's clock, whatever these are."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

from django.conf import settings

from django_leasequeue.doctor.case import Case
from django_leasequeue.doctor.findings import Finding, Kind

__all__ = ["clocks", "zone", "zone_tables"]

ZONE = Kind(
    "leasequeue.I003",
    "time",
    "Nothing for the queue, whose times are UTC all the same. Mind it in SQL of your own: NOW() "
    "is not UTC there.",
)
ZONE_TABLES = Kind(
    "leasequeue.I004",
    "time",
    "Load them with mysql_tzinfo_to_sql (mariadb-tzinfo-to-sql), if your own queries cut times "
    "to days or hours in a time zone; the queue does not need them.",
)
CLOCKS = Kind(
    "leasequeue.W012",
    "time",
    "Synchronise the clocks (NTP). Leases do not depend on it; a `run_after` that a program "
    "reckons from its own clock, and the times of log lines, do.",
)
_UTC = {"UTC", "GMT", "+00:00", "ETC/UTC", "ETC/GMT", "ETC/UCT", "UCT", "UNIVERSAL", "ZULU"}
#: Seconds.
MAX_SKEW = 5.0


def zone(case: Case) -> Iterator[Finding]:
    """Sessions are in another time zone than UTC."""
    found = case.server.zone(case.variables)
    if found is not None and found.upper() not in _UTC:
        yield ZONE.found(f"Sessions of the server are in the time zone {found}.")


def zone_tables(case: Case) -> Iterator[Finding]:
    """The server knows no named time zones."""
    if settings.USE_TZ and not case.server.knows_zones(case.connection):
        yield ZONE_TABLES.found("The server's time zone tables are empty.")


def clocks(case: Case) -> Iterator[Finding]:
    """The clocks of this host and of the server differ."""
    dialect = case.dialect
    before = datetime.now(UTC)
    ((answer,),) = case.ask(f"SELECT {dialect.select_time(dialect.stamp)}")
    after = datetime.now(UTC)
    moment = dialect.as_utc(answer)
    if moment is None:
        return
    # It was told at some moment between the two.
    ahead = max((moment - after).total_seconds(), 0)
    behind = max((before - moment).total_seconds(), 0)
    if max(ahead, behind) > MAX_SKEW:
        direction = "ahead of" if ahead else "behind"
        yield CLOCKS.found(
            f"The database's clock is {max(ahead, behind):.1f} s {direction} this host's."
        )
