"""Tasks of stored jobs, rebuilt without validation: their queue or function may be gone by now."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields
from datetime import datetime
from typing import Any

from django_leasequeue.backend.compat import Task
from django_leasequeue.registry import registry

__all__ = ["is_task", "restored_task"]


def is_task(path: str, payload: Any) -> bool:
    """Tell whether a job is a task: by its payload's form, if its type is not known as another."""
    known = registry.get(path)
    return (
        (known is None or hasattr(known, "task"))
        and isinstance(payload, dict)
        and isinstance(payload.get("args"), list)
        and isinstance(payload.get("kwargs"), dict)
        and isinstance(payload.get("backend", ""), str)
    )


def restored_task(path: str, payload: Mapping[str, Any], *, queue: str, priority: int) -> Task:
    """Return the task that a job was enqueued with.

    Its function is one that raises LookupError where the module has no such task any more.
    """
    known = _known_task(path)
    values = {
        "func": _gone(path) if known is None else known.func,
        "priority": priority,
        "backend": payload.get("backend", "default"),
        "queue_name": queue,
        "run_after": _moment(payload.get("run_after")),
        "takes_context": known is not None and known.takes_context,
    }
    kind = Task if known is None else type(known)
    task: Task = object.__new__(kind)
    for item in fields(kind):
        default = None if item.default is MISSING else item.default
        declared = default if known is None else getattr(known, item.name)
        # Neither __init__ nor __post_init__, which would ask whether it may be enqueued today.
        object.__setattr__(task, item.name, values.get(item.name, declared))
    return task


def _moment(text: Any) -> datetime | None:
    """Return the time in a payload, None for what is none: any program may have written the row."""
    try:
        return datetime.fromisoformat(text)
    except (TypeError, ValueError):
        return None


def _known_task(path: str) -> Any:
    try:
        return getattr(registry.find(path), "task", None)
    except Exception:  # noqa: BLE001  (a module that cannot be imported hides no results)
        return None


def _gone(path: str) -> Callable[..., Any]:
    def function(*args: Any, **kwargs: Any) -> Any:
        raise LookupError(f"there is no task {path} any more")

    module, _, name = path.rpartition(".")
    function.__module__, function.__name__, function.__qualname__ = module, name, name
    return function
