"""System checks of the app."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.apps import AppConfig, apps
from django.core import checks
from django.core.checks import CheckMessage, Error, Tags, register
from django.core.exceptions import ImproperlyConfigured
from django.core.management import get_commands
from django.db import connections, router
from django.utils.module_loading import module_has_submodule

from django_leasequeue.conf import get_conf
from django_leasequeue.core.dialect import dialect_for
from django_leasequeue.manifest import declare_jobs
from django_leasequeue.middleware.chain import get_chain
from django_leasequeue.registry import Registry

__all__ = [
    "check_business_rows",
    "check_command_name",
    "check_database",
    "check_jobs",
    "check_middleware",
    "check_settings",
]


@register("leasequeue")
def check_settings(
    app_configs: Sequence[AppConfig] | None = None, **kwargs: Any
) -> list[CheckMessage]:
    """leasequeue.E001: the LEASEQUEUE setting is wrong."""
    try:
        get_conf()
    except (ImproperlyConfigured, ImportError) as error:
        return [Error(str(error), hint="Correct LEASEQUEUE in settings.", id="leasequeue.E001")]
    return []


@register("leasequeue")
def check_middleware(
    app_configs: Sequence[AppConfig] | None = None, **kwargs: Any
) -> list[CheckMessage]:
    """leasequeue.E003: a middleware cannot be built."""
    try:
        get_conf()
    except (ImproperlyConfigured, ImportError):
        return []  # check_settings says it
    try:
        get_chain()
    except ImproperlyConfigured as error:
        hint = "Correct its dotted path, or give it what its constructor needs."
        return [Error(str(error), hint=hint, id="leasequeue.E003")]
    return []


@register("leasequeue")
def check_jobs(app_configs: Sequence[AppConfig] | None = None, **kwargs: Any) -> list[CheckMessage]:
    """leasequeue.E004: the job types of LEASEQUEUE["JOBS"] cannot be declared (any more)."""
    try:
        jobs = get_conf().JOBS
    except (ImproperlyConfigured, ImportError):
        return []  # check_settings says it
    try:
        declare_jobs(jobs, Registry())
    except ImproperlyConfigured as error:
        return [Error(str(error), hint="Correct LEASEQUEUE['JOBS'].", id="leasequeue.E004")]
    return []


@register("leasequeue")
def check_command_name(
    app_configs: Sequence[AppConfig] | None = None, **kwargs: Any
) -> list[CheckMessage]:
    """leasequeue.W001: another app owns the command name `runworker` (Channels does, for one)."""
    others = [
        config.label
        for config in apps.get_app_configs()
        if config.label != "leasequeue"
        and module_has_submodule(config.module, "management.commands.runworker")
    ]
    if not others and get_commands().get("runworker") == "django_leasequeue":
        return []
    return [
        checks.Warning(
            f"Another app also has a command named runworker: {', '.join(others) or 'unknown'}.",
            hint="Start the worker with 'manage.py leasequeue worker' instead.",
            id="leasequeue.W001",
        )
    ]


@register("leasequeue")
def check_business_rows(
    app_configs: Sequence[AppConfig] | None = None, **kwargs: Any
) -> list[CheckMessage]:
    """leasequeue.W002: the queue is in another database than all of the project's rows."""
    try:
        queue = get_conf().DATABASE
    except (ImproperlyConfigured, ImportError):
        return []  # check_settings says it
    aliases = {
        router.db_for_write(model)
        for config in apps.get_app_configs()
        if config.label != "leasequeue" and not config.name.startswith("django.contrib.")
        for model in config.get_models()
    }
    if not aliases or queue in aliases:
        return []
    return [
        checks.Warning(
            f"The queue is in the database {queue!r}, and the project's rows are in "
            f"{', '.join(sorted(map(repr, aliases)))}: no transaction joins them.",
            hint="Enqueues do not commit with the rows, and complete() makes rows at least once, "
            "not exactly once. Keep the queue where the rows are, or see docs/guarantees.md.",
            id="leasequeue.W002",
        )
    ]


@register(Tags.database)
def check_database(
    app_configs: Sequence[AppConfig] | None = None,
    databases: Sequence[str] | None = None,
    **kwargs: Any,
) -> list[CheckMessage]:
    """leasequeue.E002: the queue's database cannot hold it."""
    try:
        alias = get_conf().DATABASE
    except (ImproperlyConfigured, ImportError):
        return []  # check_settings says it
    if not databases or alias not in databases:
        return []
    connection = connections[alias]
    try:
        dialect_for(connection)
    except NotImplementedError as error:
        return [Error(str(error), hint="Set LEASEQUEUE['DATABASE'].", id="leasequeue.E002")]
    if (
        not connection.features.has_select_for_update_skip_locked
        and connection.features.has_select_for_update
    ):
        version = ".".join(map(str, connection.get_database_version()))
        return [
            Error(
                f"The queue's database server, version {version}, has no "
                "SELECT … FOR UPDATE SKIP LOCKED.",
                hint="MySQL 8.0.17, MariaDB 10.6 or PostgreSQL 14 are the oldest supported.",
                id="leasequeue.E002",
            )
        ]
    return []
