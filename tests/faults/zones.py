"""Time zones of the project and of the server's sessions, in every combination that differs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.signals import connection_created

#: PostgreSQL's names, for the signs of offsets are the other way round there.
_NAMES = {"-05:00": "America/Bogota", "+05:30": "Asia/Kolkata"}
_SECONDS_AHEAD = {
    "mysql": "TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), {column}) / 1e6",
    "postgresql": "EXTRACT(EPOCH FROM {column} - clock_timestamp())",
    "sqlite": "(julianday({column}) - julianday('now')) * 86400",
}


@dataclass(frozen=True)
class Zones:
    """A server's zone as an offset, and a project's settings."""

    server: str
    use_tz: bool
    time_zone: str
    #: DATABASES[...]["TIME_ZONE"]: what Django's own field would write local times in.
    database: str | None = None

    def __str__(self) -> str:
        return f"{self.server} {'aware' if self.use_tz else 'naive'} {self.time_zone}"


COMBINATIONS = [
    Zones(server, use_tz, time_zone, database)
    for server in ("-05:00", "+05:30")
    for use_tz, time_zone, database in (
        (True, "UTC", None),
        (True, "America/New_York", "Asia/Kolkata"),
        (False, "America/New_York", None),
        (False, "Asia/Kolkata", None),
    )
]


@contextmanager
def in_zones(zones: Zones, settings: Any) -> Iterator[None]:
    """Let the project have these settings, and every session of the block the server's zone.

    Django sets its own sessions' zone on PostgreSQL; the driver's are in the database's.
    """

    def set_zone(*, connection: BaseDatabaseWrapper, **kwargs: Any) -> None:
        if connection.vendor == "mysql":
            _run(connection, f"SET SESSION time_zone = '{zones.server}'")

    connection, database = connections["default"], connections.settings["default"]
    before = database["TIME_ZONE"]
    name = connection.ops.quote_name(database["NAME"])
    if connection.vendor == "postgresql":
        _run(connection, f"ALTER DATABASE {name} SET timezone = '{_NAMES[zones.server]}'")
    connection.close()
    database["TIME_ZONE"] = zones.database
    settings.USE_TZ, settings.TIME_ZONE = zones.use_tz, zones.time_zone
    connection.close()
    connection_created.connect(set_zone, weak=False, dispatch_uid="tests.zones")
    try:
        yield
    finally:
        connection_created.disconnect(dispatch_uid="tests.zones")
        database["TIME_ZONE"] = before
        connection.close()
        if connection.vendor == "postgresql":
            _run(connection, f"ALTER DATABASE {name} RESET timezone")


def _run(connection: BaseDatabaseWrapper, sql: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(sql)


def seconds_ahead(connection: BaseDatabaseWrapper, table: str, column: str, row: int) -> float:
    """Return how far a stored time is from now, by the server's own arithmetic in UTC."""
    sql = _SECONDS_AHEAD[connection.vendor].format(column=column)
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {sql} FROM {table} WHERE id = %s", [row])
        return float(cursor.fetchone()[0])
