"""The tables against the models: migrations, columns, their types, indexes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from django.db.migrations.loader import MigrationLoader
from django.db.models import Model, UniqueConstraint

from django_leasequeue.core.inspection.server import Column, NotPermitted
from django_leasequeue.doctor.case import Case
from django_leasequeue.doctor.findings import Finding, Kind
from django_leasequeue.fields import ExactCharField, HexField, TokenField, UtcDateTimeField

__all__ = ["columns", "indexes", "migrations", "types"]

MIGRATIONS = Kind("leasequeue.E014", "schema", "Run 'manage.py migrate' with the account that may.")
MISSING = Kind(
    "leasequeue.E015",
    "schema",
    "Run 'manage.py migrate'. If it has nothing to do, somebody dropped or renamed them: "
    "docs/schema.md has every column, 'manage.py sqlmigrate leasequeue 0001' its statement.",
)
INDEXES = Kind(
    "leasequeue.E016",
    "schema",
    "Create them again: 'manage.py sqlmigrate leasequeue 0001' has the statements. Without "
    "them workers read the whole table, and MySQL and MariaDB refuse the statements.",
)
TYPES = Kind(
    "leasequeue.W018",
    "schema",
    "Alter them back: times lose their microseconds, or texts that differ count as equal.",
)
_OWN_TYPES = (ExactCharField, HexField, TokenField, UtcDateTimeField)


def migrations(case: Case) -> Iterator[Finding]:
    """Migrations of the queue have not been applied."""
    if not case.may_read("django_migrations"):
        raise NotPermitted("SELECT on django_migrations")
    loader = MigrationLoader(case.connection)
    pending = sorted(
        name
        for app, name in set(loader.graph.nodes) - set(loader.applied_migrations)
        if app == "leasequeue"
    )
    if pending:
        yield MIGRATIONS.found(f"Migrations of the queue are not applied: {', '.join(pending)}.")


def columns(case: Case) -> Iterator[Finding]:
    """Tables or columns are missing."""
    missing = sorted(set(case.models) - set(case.tables) - case.unseen)
    for table in case.tables:
        with case.connection.cursor() as cursor:
            description = case.connection.introspection.get_table_description(cursor, table)
        found = {column.name for column in description}
        fields = case.models[table]._meta.concrete_fields
        missing += [f"{table}.{one.column}" for one in fields if one.column not in found]
    if missing:
        yield MISSING.found(f"Missing tables or columns: {', '.join(missing)}.")
    if case.unseen:
        raise NotPermitted(f"SELECT on {', '.join(sorted(case.unseen))} to look at these")


def types(case: Case) -> Iterator[Finding]:
    """Columns whose type the queue relies on have another one."""
    found = case.server.column_types(case.connection, case.tables)
    wrong = []
    for table in case.tables:
        for one in case.models[table]._meta.concrete_fields:
            actual = found.get(Column(table, str(one.column)))
            wanted = one.db_type(case.connection)
            if isinstance(one, _OWN_TYPES) and actual is not None and actual != wanted:
                wrong.append(f"{table}.{one.column} is {actual}, not {wanted}")
    if wrong:
        yield TYPES.found(f"Columns of another type: {'; '.join(wrong)}.")


def indexes(case: Case) -> Iterator[Finding]:
    """Indexes or unique constraints are missing, or have other columns."""
    wrong = [name for table in case.tables for name in _wrong_indexes(case, table)]
    if wrong:
        yield INDEXES.found(f"Missing or altered indexes: {', '.join(wrong)}.")


def _wrong_indexes(case: Case, table: str) -> Iterator[str]:
    with case.connection.cursor() as cursor:
        found = case.connection.introspection.get_constraints(cursor, table)
    for name, (fields, unique) in _wanted_indexes(case.models[table]).items():
        there = found.get(name)
        if there is None or _differs(there, fields, unique=unique):
            yield name


def _differs(there: Mapping[str, Any], fields: list[str], *, unique: bool) -> bool:
    return list(there["columns"]) != fields or bool(there["unique"]) != unique


def _wanted_indexes(model: type[Model]) -> dict[str, tuple[list[str], bool]]:
    """Return the columns of each named index, and whether it is unique."""
    unique = {
        one.name: (_columns(model, one.fields), True)
        for one in model._meta.constraints
        if isinstance(one, UniqueConstraint)
    }
    plain = {one.name: (_columns(model, one.fields), False) for one in model._meta.indexes}
    return {**unique, **plain}


def _columns(model: type[Model], names: Any) -> list[str]:
    by_name = {one.name: str(one.column) for one in model._meta.concrete_fields}
    return [by_name[name] for name in names]
