"""Finding tasks: modules called `tasks` at start-up, other ones when a job first names them.

A job's row names a path, and anybody who may insert a row may write one. Only modules of the
project are imported for it, and only a Task that is found there is run.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any

from django.apps import apps
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.utils.module_loading import autodiscover_modules, import_string

from django_leasequeue.backend import LeaseQueueBackend
from django_leasequeue.backend.compat import Task
from django_leasequeue.backend.tasks import TaskDeclaration, declaration_of
from django_leasequeue.registry import registry

__all__ = ["discover"]


def discover() -> None:
    """Import every app's `tasks.py` and the MODULES of the backends, and register their tasks.

    Nothing is imported when no entry of TASKS names this backend, or a class made of it. Raises
    what those modules raise.
    """
    configured: dict[str, Any] = settings.TASKS
    entries = [entry for entry in configured.values() if _is_ours(entry.get("BACKEND"))]
    if not entries:
        return
    autodiscover_modules("tasks")
    for entry in entries:
        for module in _modules_of(entry):
            import_module(module)
    registry.resolve_with(_resolve)


def _modules_of(entry: dict[str, Any]) -> list[str]:
    modules = (entry.get("OPTIONS") or {}).get("MODULES") or []
    if not isinstance(modules, list | tuple):
        raise ImproperlyConfigured(
            f"OPTIONS['MODULES'] of TASKS is a list of dotted names, not {modules!r}."
        )
    return list(modules)


def _resolve(path: str) -> TaskDeclaration | None:
    """Return the declaration of the task with this path, None when there is no such task."""
    module, _, name = path.rpartition(".")
    if not _is_of_project(module):
        return None
    try:
        loaded = import_module(module)
    except ModuleNotFoundError as error:
        if error.name is not None and f"{module}.".startswith(f"{error.name}."):
            return None
        raise  # the module is there, and something that it imports is not
    found: Any = getattr(loaded, name, None)
    return declaration_of(found) if isinstance(found, Task) else None


def _is_of_project(module: str) -> bool:
    if module in sys.modules:
        return True
    packages = [config.name for config in apps.get_app_configs()]
    packages.append(str(getattr(settings, "SETTINGS_MODULE", "")).partition(".")[0] or ".")
    return any(f"{module}.".startswith(f"{package}.") for package in packages)


def _is_ours(path: Any) -> bool:
    try:
        found = import_string(path)
    except (ImportError, TypeError, AttributeError):
        return False  # Django says it, with the alias
    return isinstance(found, type) and issubclass(found, LeaseQueueBackend)
