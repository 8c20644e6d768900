"""What can be wrong with the TASKS entry of a backend."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error

__all__ = ["check_backend"]

_OPTIONS = {"DATABASE", "MODULES"}
_LONGEST = 64


def check_backend(
    alias: str, queues: Collection[Any], options: Mapping[str, Any]
) -> list[CheckMessage]:
    """Return a message for each fault of TASKS[alias]."""
    faults = [*_queues(queues), *_options(options)]
    return [
        Error(f"TASKS[{alias!r}]: {text}", hint=hint, obj=alias, id=f"leasequeue.{number}")
        for number, text, hint in faults
    ]


def _queues(queues: Collection[Any]) -> list[tuple[str, str, str]]:
    wrong = [
        queue for queue in queues if not isinstance(queue, str) or not 1 <= len(queue) <= _LONGEST
    ]
    hint = f"A queue's name is a text of 1 to {_LONGEST} characters."
    return [("E017", f"{queue!r} in QUEUES is no name of a queue.", hint) for queue in wrong]


def _options(options: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    faults = [
        ("E018", f"OPTIONS has no {name!r}.", f"There are {', '.join(sorted(_OPTIONS))}.")
        for name in sorted(set(options) - _OPTIONS)
    ]
    database = options.get("DATABASE")
    if database is not None and database not in settings.DATABASES:
        hint = "Name an alias of DATABASES, or leave it out."
        faults.append(("E019", f"there is no database {database!r}.", hint))
    return faults
