"""Column types that mean the same on every database: UTC times, exact text, tokens."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import CharField, DateTimeField, Field
from django.utils import timezone
from django.utils.dateparse import parse_datetime

from django_leasequeue.core.dialect import dialect_for

if TYPE_CHECKING:
    # Generic in the stubs alone.
    _CharField = CharField[Any, Any]
    _DateTimeField = DateTimeField[Any, Any]
    _Field = Field[Any, Any]
else:
    _CharField, _DateTimeField, _Field = CharField, DateTimeField, Field

__all__ = ["ExactCharField", "HexField", "TokenField", "UtcDateTimeField"]


class UtcDateTimeField(_DateTimeField):
    """A time that is aware UTC in Python and UTC in the column, whatever the settings say.

    Django's own field refuses aware values under USE_TZ=False on MySQL and reads columns in the
    connection's zone; naive values given to this field are taken in the current time zone.
    """

    def get_internal_type(self) -> str:
        # Not "DateTimeField": that name would bring the backend's own conversions back.
        return "UtcDateTimeField"

    def db_type(self, connection: BaseDatabaseWrapper) -> str:
        return dialect_for(connection).time_type

    def cast_db_type(self, connection: BaseDatabaseWrapper) -> str:
        return self.db_type(connection)

    def to_python(self, value: Any) -> datetime | None:
        if isinstance(value, str):
            value = parse_datetime(value) or value
        parsed = value if isinstance(value, datetime) else super().to_python(value)
        if parsed is None:
            return None
        if timezone.is_naive(parsed):
            parsed = timezone.make_aware(parsed)
        return parsed.astimezone(UTC)

    def get_prep_value(self, value: Any) -> Any:
        value = Field.get_prep_value(self, value)
        return self.to_python(value)

    def get_db_prep_value(
        self, value: Any, connection: BaseDatabaseWrapper, prepared: bool = False
    ) -> Any:
        value = value if prepared else self.get_prep_value(value)
        if not isinstance(value, datetime):
            return value
        return dialect_for(connection).time_param(value)

    def from_db_value(
        self, value: Any, expression: Any, connection: BaseDatabaseWrapper
    ) -> datetime | None:
        """Return the time as aware UTC."""
        return dialect_for(connection).as_utc(value)

    def select_format(self, compiler: Any, sql: str, params: Any) -> tuple[str, Any]:
        from django.conf import settings

        if settings.USE_TZ:
            return sql, params
        return dialect_for(compiler.connection).select_time(sql), params


class ExactCharField(_CharField):
    """Text that compares exactly, case, accents and trailing spaces included."""

    def db_type(self, connection: BaseDatabaseWrapper) -> str:
        return dialect_for(connection).text_type % self.max_length

    def cast_db_type(self, connection: BaseDatabaseWrapper) -> str:
        return self.db_type(connection)


class HexField(_CharField):
    """ASCII text that compares exactly: digests, status words."""

    def db_type(self, connection: BaseDatabaseWrapper) -> str:
        return dialect_for(connection).ascii_type % self.max_length


class TokenField(_Field):
    """A lease token: 16 random bytes, new for each lane of a claim."""

    description = "Lease token"
    empty_values = [None]

    def get_internal_type(self) -> str:
        return "TokenField"

    def db_type(self, connection: BaseDatabaseWrapper) -> str:
        return dialect_for(connection).token_type

    def from_db_value(
        self, value: Any, expression: Any, connection: BaseDatabaseWrapper
    ) -> bytes | None:
        """Return the token as bytes, whatever the driver gave."""
        return None if value is None else bytes(value)

    def to_python(self, value: Any) -> bytes | None:
        return bytes.fromhex(value) if isinstance(value, str) else value

    def value_to_string(self, obj: Any) -> str:
        value = self.value_from_object(obj)
        return "" if value is None else value.hex()
