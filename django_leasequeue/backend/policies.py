"""`@policy(...)` under `@task`: what django.tasks has no words for, on every Django."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any, TypeVar

from django_leasequeue.declaration import Declaration

__all__ = ["OPTIONS", "policy", "policy_of"]

F = TypeVar("F", bound=Callable[..., Any])

_ATTRIBUTE = "_leasequeue_policy"
#: What @task says itself, and what a task has no use for: its payload is made by the backend.
_OTHERS = {
    "handler",
    "name",
    "queue",
    "priority",
    "takes_context",
    "sensitive",
    "version",
    "upcast",
}
OPTIONS = frozenset(item.name for item in fields(Declaration)) - _OTHERS


def policy(**options: Any) -> Callable[[F], F]:
    """Declare the policy of a task: write it under `@task`, right above the function.

    Options are those of `@job`: `max_attempts`, `max_crashes`, `backoff`, `timeout`, `lease`,
    `atomic`, `permanent`, `failed`, `key`, `key_until`. What is left out is as the settings say.
    A `key` function gets the task's arguments by name. Raises TypeError for other options and for
    an object that is a Task already; values are checked when the task is made.
    """
    unknown = sorted(set(options) - OPTIONS)
    if unknown:
        raise TypeError(
            f"@policy has no option {', '.join(unknown)}: there are {', '.join(sorted(OPTIONS))}"
        )

    def declare(function: F) -> F:
        if hasattr(function, "func"):
            raise TypeError("write @policy(...) under @task: it is for the function itself")
        setattr(function, _ATTRIBUTE, {**policy_of(function), **options})
        return function

    return declare


def policy_of(function: Callable[..., Any]) -> Mapping[str, Any]:
    """Return the policy that was declared for a function, empty for none."""
    found: Mapping[str, Any] = getattr(function, _ATTRIBUTE, {})
    return found
