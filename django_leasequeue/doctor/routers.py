"""Which database the queue is in, and what the project's routers make of that.

The queue asks no router. Reads and writes of its models by others do: the admin, the project.
"""

from __future__ import annotations

from collections.abc import Iterator

from django.apps import apps
from django.conf import settings
from django.db import router
from django.db.models import Model

from django_leasequeue.conf import get_conf
from django_leasequeue.doctor.case import Case
from django_leasequeue.doctor.findings import Finding, Kind

__all__ = ["alias_in_use", "business_rows", "migrations_allowed", "reads", "writes"]

ELSEWHERE = Kind(
    "leasequeue.W002",
    "routers",
    "Enqueues do not commit with the rows, and complete() makes rows at least once, "
    "not exactly once. Keep the queue where the rows are, or see docs/guarantees.md.",
)
READS = Kind(
    "leasequeue.W003",
    "routers",
    "Have db_for_read return LEASEQUEUE['DATABASE'] for the app leasequeue: a replica that lags "
    "shows jobs as they were.",
)
WRITES = Kind(
    "leasequeue.W004",
    "routers",
    "Have db_for_write return LEASEQUEUE['DATABASE'] for the app leasequeue, or set "
    "LEASEQUEUE['DATABASE'] to where it sends them.",
)
DENIED = Kind(
    "leasequeue.E005",
    "routers",
    "Have allow_migrate return True for the app leasequeue there, or set LEASEQUEUE['DATABASE'] "
    "to where it is allowed; then run 'manage.py migrate --database ALIAS'.",
)
IN_USE = Kind(
    "leasequeue.I001",
    "routers",
    "Nothing, if that is what you mean. Commands use it without --database.",
)


def business_rows() -> Iterator[Finding]:
    """The queue is in another database than all of the project's rows."""
    queue = get_conf().DATABASE
    aliases = {
        router.db_for_write(model)
        for config in apps.get_app_configs()
        if config.label != "leasequeue" and not config.name.startswith("django.contrib.")
        for model in config.get_models()
    }
    if aliases and queue not in aliases:
        yield ELSEWHERE.found(
            f"The queue is in the database {queue!r}, and the project's rows are in "
            f"{_listed(aliases)}: no transaction joins them."
        )


def reads(case: Case) -> Iterator[Finding]:
    """A router sends reads of the queue's models to another database.

    The queue works all the same, so that no worker says this at each start.
    """
    queue = case.alias
    if others := {router.db_for_read(model) for model in _models()} - {queue}:
        yield READS.found(
            f"The queue is in the database {queue!r}, and a router sends reads of its models to "
            f"{_listed(others)}. Workers do not follow it; the admin and your own queries do."
        )


def writes() -> Iterator[Finding]:
    """A router sends writes of the queue's models to another database."""
    queue = get_conf().DATABASE
    if others := {router.db_for_write(model) for model in _models()} - {queue}:
        yield WRITES.found(
            f"The queue is in the database {queue!r}, and a router sends writes of its models to "
            f"{_listed(others)}: what the admin writes there no worker sees."
        )


def migrations_allowed() -> Iterator[Finding]:
    """A router does not let the queue's tables be made where the queue is."""
    queue = get_conf().DATABASE
    if not all(router.allow_migrate_model(queue, model) for model in _models()):
        yield DENIED.found(
            f"LEASEQUEUE['DATABASE'] is {queue!r}, and a router does not let the queue's tables "
            f"be made there. It allows them in {_listed(_allowed()) or 'no database'}."
        )


def alias_in_use(case: Case) -> Iterator[Finding]:
    """The queue's tables may be made in several databases: say which one is used."""
    if others := _allowed() - {case.alias}:
        yield IN_USE.found(
            f"The queue is in the database {case.alias!r}; `migrate` may make its tables in "
            f"{_listed(others)} as well, where nothing reads them."
        )


def _models() -> list[type[Model]]:
    return list(apps.get_app_config("leasequeue").get_models())


def _allowed() -> set[str]:
    return {
        alias
        for alias in settings.DATABASES
        if all(router.allow_migrate_model(alias, model) for model in _models())
    }


def _listed(aliases: set[str]) -> str:
    return ", ".join(sorted(map(repr, aliases)))
