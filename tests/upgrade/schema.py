"""The schema as data, and what makes one the additive successor of another."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.db import models
from django.db.migrations import Migration
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.writer import MigrationWriter

APP = "leasequeue"
#: What a field says to people, and to Python: no part of its column.
_SPOKEN = {"choices", "help_text", "related_name", "validators", "verbose_name"}

Schema = dict[str, Any]


def migrations() -> list[str]:
    """Return the app's migrations in their order."""
    loader = MigrationLoader(None)
    (leaf,) = loader.graph.leaf_nodes(APP)
    return [name for app, name in loader.graph.forwards_plan(leaf) if app == APP]


def schema_after(migration: str) -> Schema:
    """Return the tables as the migrations make them, up to and with this one."""
    state = MigrationLoader(None).project_state((APP, migration))
    return {
        model.options.get("db_table", f"{APP}_{name}"): {
            "columns": {column: _column(field) for column, field in _columns(model.fields)},
            "constraints": {
                constraint.name: _text(constraint)
                for constraint in model.options.get("constraints", ())
            },
            "indexes": {index.name: _text(index) for index in model.options.get("indexes", ())},
        }
        for (app, name), model in state.models.items()
        if app == APP
    }


def _columns(fields: dict[str, models.Field[Any, Any]]) -> Iterator[tuple[str, Any]]:
    for name, field in fields.items():
        yield f"{name}_id" if field.is_relation else name, field


def _column(field: models.Field[Any, Any]) -> dict[str, str]:
    _name, path, _arguments, options = field.deconstruct()
    kept = {name: value for name, value in options.items() if name not in _SPOKEN}
    return {"type": path, **{name: _text(value) for name, value in kept.items()}}


def _text(value: Any) -> str:
    return MigrationWriter.serialize(value)[0]


def hasty(migration: Migration) -> list[str]:
    """Return why a migration might be left half done, or not be taken back."""
    count = len(migration.operations)
    found = [] if count == 1 else [f"{migration.name} is {count} operations: split it"]
    stuck = [one for one in migration.operations if not one.reversible]
    return found + [f"{migration.name} cannot be undone: {one.describe()}" for one in stuck]


def later_migrations(than: list[str]) -> list[Migration]:
    """Return the app's migrations that are not among these."""
    loader = MigrationLoader(None)
    return [
        loader.get_migration(APP, name)
        for app, name in loader.disk_migrations or ()
        if app == APP and name not in than
    ]


def breaks(old: Schema, new: Schema) -> list[str]:
    """Return what stands in the way of processes that know `old` on a database that has `new`."""
    found = [f"{table} is gone" for table in old.keys() - new.keys()]
    for table in old.keys() & new.keys():
        found += [f"{table}.{what}" for what in _broken(old[table], new[table])]
    return sorted(found)


def _broken(old: Schema, new: Schema) -> Iterator[str]:
    before, after = old["columns"], new["columns"]
    for name in before.keys() - after.keys():
        yield f"{name} is gone"
    for name in before.keys() & after.keys():
        if before[name] != after[name] and not _is_wider(before[name], after[name]):
            yield f"{name} is another column"
    for name in after.keys() - before.keys():
        if not {"null", "db_default"} & after[name].keys():
            yield f"{name} has no default in the database"
        if "unique" in after[name]:
            yield f"{name} is unique: a default cannot be"
    for name, said in old["constraints"].items():
        if new["constraints"].get(name) != said:
            yield f"{name} does not constrain as it did"
    for name in new["constraints"].keys() - old["constraints"].keys():
        yield f"{name} may refuse what was written before"


def _is_wider(before: dict[str, str], after: dict[str, str]) -> bool:
    lengths = [int(one.get("max_length", 0)) for one in (before, after)]
    others = [{k: v for k, v in one.items() if k != "max_length"} for one in (before, after)]
    return others[0] == others[1] and lengths[0] < lengths[1]
