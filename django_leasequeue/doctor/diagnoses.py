"""The one list of diagnoses, by what they need: nothing, a server, the queue's tables."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from django_leasequeue.doctor import (
    bounds,
    capacity,
    configuration,
    engines,
    isolation,
    plans,
    privileges,
    relations,
    routers,
    snapshots,
    standing,
    tables,
    texts,
    times,
    upkeep,
)
from django_leasequeue.doctor.case import Case
from django_leasequeue.doctor.findings import Finding

__all__ = ["ON_SERVER", "ON_TABLES", "QUICK", "WITHOUT_SERVER", "Diagnosis", "Look"]

#: Looks at the project alone.
Look = Callable[[], Iterable[Finding]]
#: Looks at a server.
Diagnosis = Callable[[Case], Iterable[Finding]]

#: After `configuration.settings`, which says whether there is anything to look at.
WITHOUT_SERVER: tuple[Look, ...] = (
    configuration.middleware,
    configuration.jobs,
    configuration.wakeup,
    configuration.command_name,
    routers.business_rows,
    routers.writes,
    routers.migrations_allowed,
    relations.model_fields,
    bounds.leases,
    bounds.autocommit,
)

#: The system checks of `check --database` and `migrate`: cheap, and true before the tables exist.
QUICK: tuple[Diagnosis, ...] = (
    engines.skip_locked,
    engines.log_format,
    engines.default_engine,
    engines.table_engines,
    routers.alias_in_use,
    routers.reads,
    isolation.isolation,
    texts.character_sets,
    texts.column_sets,
    texts.modes,
)

#: What only the doctor looks at.
ON_SERVER: tuple[Diagnosis, ...] = (
    *QUICK,
    engines.read_only,
    bounds.lock_waits,
    times.zone,
    times.zone_tables,
    times.clocks,
    snapshots.old_transactions,
    upkeep.durability,
    tables.migrations,
    tables.columns,
)

#: Needs every table and column.
ON_TABLES: tuple[Diagnosis, ...] = (
    tables.indexes,
    tables.types,
    privileges.privileges,
    plans.plans,
    relations.foreign_keys,
    standing.unknown_statuses,
    standing.expired_leases,
    standing.no_deadlines,
    capacity.connections_left,
    upkeep.vacuum,
    upkeep.dead_rows,
)
