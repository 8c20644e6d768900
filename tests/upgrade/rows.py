"""The rows of all tables as JSON, and back: times go along with the clock, all else stays."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django.apps import apps
from django.core.management.color import no_style
from django.db import models
from django.db.backends.base.base import BaseDatabaseWrapper

from django_leasequeue.core.clock import read_now
from tests.house_rules import ROOT
from tests.upgrade.schema import APP

Rows = dict[str, list[dict[str, Any]]]
#: Between a release and the version after it: leases have run out, what was later is due.
_LATER = timedelta(days=1)
_CHECKOUT = f"{ROOT}/"


def dump(connection: BaseDatabaseWrapper) -> Rows:
    """Return every row of the app's tables; times in seconds from now, binary as hexadecimal."""
    now = read_now(connection)
    return {
        model._meta.db_table: [
            {field.column: _plain(getattr(row, field.attname), now) for field in _fields(model)}
            for row in model._default_manager.using(connection.alias).order_by("pk")
        ]
        for model in _models()
    }


def load(connection: BaseDatabaseWrapper, rows: Rows) -> None:
    """Insert them by plain SQL, which names the columns that they have and no other."""
    moment = read_now(connection) - _LATER
    with connection.cursor() as cursor:
        for model in _models():
            fields = {field.column: field for field in _fields(model)}
            for row in rows.get(model._meta.db_table, ()):
                values = [
                    fields[column].get_db_prep_save(
                        _python(fields[column], value, moment), connection
                    )
                    for column, value in row.items()
                ]
                columns = ", ".join(map(connection.ops.quote_name, row))
                marks = ", ".join(["%s"] * len(values))
                table = connection.ops.quote_name(model._meta.db_table)
                cursor.execute(f"INSERT INTO {table} ({columns}) VALUES ({marks})", values)
        for statement in connection.ops.sequence_reset_sql(no_style(), _models()):
            cursor.execute(statement)


def _models() -> list[type[models.Model]]:
    return sorted(apps.get_app_config(APP).get_models(), key=lambda model: model._meta.db_table)


def _fields(model: type[models.Model]) -> list[Any]:
    return list(model._meta.concrete_fields)


def _plain(value: Any, now: datetime) -> Any:
    if isinstance(value, datetime):
        return round((value - now).total_seconds(), 3)
    if isinstance(value, list):
        # Frames name files: where the checkout lies is nobody's business.
        return [one.removeprefix(_CHECKOUT) if isinstance(one, str) else one for one in value]
    return value.hex() if isinstance(value, bytes) else value


def _python(field: Any, value: Any, moment: datetime) -> Any:
    if value is None:
        return None
    if isinstance(field, models.DateTimeField):
        return moment + timedelta(seconds=value)
    return bytes.fromhex(value) if field.get_internal_type() == "TokenField" else value
