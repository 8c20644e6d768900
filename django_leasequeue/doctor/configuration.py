"""The LEASEQUEUE setting, and the command's name."""

from __future__ import annotations

from collections.abc import Iterator

from django.apps import apps
from django.core.exceptions import ImproperlyConfigured
from django.core.management import get_commands
from django.db import connections
from django.utils.module_loading import module_has_submodule

from django_leasequeue.conf import get_conf
from django_leasequeue.core.listening import can_listen
from django_leasequeue.doctor.findings import Finding, Kind
from django_leasequeue.manifest import declare_jobs
from django_leasequeue.middleware.chain import get_chain
from django_leasequeue.registry import Registry

__all__ = ["command_name", "jobs", "middleware", "settings", "wakeup"]

SETTING = Kind("leasequeue.E001", "settings", "Correct LEASEQUEUE in settings.")
MIDDLEWARE = Kind(
    "leasequeue.E003",
    "settings",
    "Correct its dotted path, or give it what its constructor needs.",
)
JOBS = Kind("leasequeue.E004", "settings", "Correct LEASEQUEUE['JOBS'].")
WAKEUP = Kind(
    "leasequeue.W022",
    "settings",
    "Set LEASEQUEUE['WAKEUP'] to 'poll' or 'nudge', or use psycopg 3 with PostgreSQL.",
)
COMMAND = Kind(
    "leasequeue.W001",
    "settings",
    "Start the worker with 'manage.py leasequeue worker' instead.",
)


def settings() -> Iterator[Finding]:
    """The LEASEQUEUE setting is wrong; nothing else can be looked at then."""
    try:
        get_conf()
    except (ImproperlyConfigured, ImportError) as error:
        yield SETTING.found(str(error))


def middleware() -> Iterator[Finding]:
    """A middleware cannot be built."""
    try:
        get_chain()
    except ImproperlyConfigured as error:
        yield MIDDLEWARE.found(str(error))


def jobs() -> Iterator[Finding]:
    """The job types of LEASEQUEUE["JOBS"] cannot be declared (any more)."""
    try:
        declare_jobs(get_conf().JOBS, Registry())
    except ImproperlyConfigured as error:
        yield JOBS.found(str(error))


def wakeup() -> Iterator[Finding]:
    """WAKEUP asks for notifications that its database or driver does not have."""
    conf = get_conf()
    if conf.WAKEUP == "notify" and not can_listen(connections[conf.DATABASE]):
        yield WAKEUP.found(
            f"WAKEUP is 'notify', and {conf.DATABASE!r} cannot notify: workers only poll."
        )


def command_name() -> Iterator[Finding]:
    """Another app owns the command name `runworker` (Channels does, for one)."""
    others = [
        config.label
        for config in apps.get_app_configs()
        if config.label != "leasequeue"
        and module_has_submodule(config.module, "management.commands.runworker")
    ]
    if others or get_commands().get("runworker") != "django_leasequeue":
        names = ", ".join(others) or "unknown"
        yield COMMAND.found(f"Another app also has a command named runworker: {names}.")
