"""The queue's clock: the database's, in UTC, for model queries and column defaults."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import Func
from django.db.models.sql.compiler import SQLCompiler

from django_leasequeue.core.dialect import dialect_for
from django_leasequeue.fields import HexField, UtcDateTimeField

__all__ = ["RandomKey", "UtcNow", "read_now"]


class UtcNow(Func):
    """The database's time, whatever the session's time zone, USE_TZ and TIME_ZONE are."""

    arity = 0
    output_field = UtcDateTimeField()

    def as_sql(
        self, compiler: SQLCompiler, connection: BaseDatabaseWrapper, *args: Any, **kwargs: Any
    ) -> tuple[str, tuple[str | int, ...]]:
        return dialect_for(connection).now, ()


class RandomKey(Func):
    """64 random hex digits made by the database: the key of a job inserted without one."""

    arity = 0
    output_field = HexField(max_length=64)

    def as_sql(
        self, compiler: SQLCompiler, connection: BaseDatabaseWrapper, *args: Any, **kwargs: Any
    ) -> tuple[str, tuple[str | int, ...]]:
        return dialect_for(connection).random_key, ()


def read_now(connection: BaseDatabaseWrapper) -> datetime:
    """Return the database's time, aware and in UTC; raises its errors."""
    dialect = dialect_for(connection)
    with connection.cursor() as cursor:
        cursor.execute(f"/* leasequeue:clock */ SELECT {dialect.select_time(f'({dialect.now})')}")
        (value,) = cursor.fetchone()
    return dialect.as_utc(value) or datetime.now(UTC)
