"""A task as a job type: called with the positional and named arguments that its payload holds."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from django.core.exceptions import ImproperlyConfigured

from django_leasequeue.backend.compat import Task
from django_leasequeue.backend.policies import policy_of
from django_leasequeue.backend.running import task_context
from django_leasequeue.declaration import Declaration
from django_leasequeue.exceptions import RejectedJob
from django_leasequeue.registry import registry
from django_leasequeue.retry import Backoff

__all__ = ["LeaseTask", "TaskDeclaration", "declaration_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseTask(Task):
    """A task with what this queue keeps beyond django.tasks; None means "as the policy says"."""

    max_attempts: int | None = None
    backoff: Backoff | None = None
    timeout: float | None = None
    key: str | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        # By name: a class with slots is made twice, and super() would know the first one only.
        Task.__post_init__(self)
        declaration_of(self)

    def using(  # type: ignore[override,unused-ignore]
        self,
        *,
        priority: int | None = None,
        queue_name: str | None = None,
        run_after: datetime | None = None,
        backend: str | None = None,
        max_attempts: int | None = None,
        timeout: float | None = None,
        key: str | None = None,
    ) -> LeaseTask:
        """Return this task with other values; None leaves one as it is.

        Beyond django.tasks: `max_attempts`, `timeout` (seconds) and `key` of the jobs that are
        enqueued with it.
        """
        values = {
            "priority": priority,
            "queue_name": queue_name,
            "run_after": run_after,
            "backend": backend,
            "max_attempts": max_attempts,
            "timeout": timeout,
            "key": key,
        }
        changes: dict[str, Any] = {
            name: value for name, value in values.items() if value is not None
        }
        return replace(self, **changes)


@dataclass(frozen=True, eq=False)
class TaskDeclaration(Declaration):
    """A task's declaration; its payload is `{"args": […], "kwargs": {…}}`."""

    task: Any = None

    def payload_from(self, args: tuple[Any, ...], payload: dict[str, Any]) -> dict[str, Any]:
        """Return the payload of a call with these arguments. Raises TypeError if they misfit."""
        made: dict[str, Any] = {"args": list(args), "kwargs": payload}
        try:
            self._bound(made)
        except TypeError as error:
            raise TypeError(f"{self.name}: {error}") from None
        return made if self.task.backend == "default" else {**made, "backend": self.task.backend}

    def arguments(self, payload: dict[str, Any]) -> dict[str, Any]:
        """Return the handler's arguments; raise RejectedJob when the task cannot be called so."""
        arguments = super().arguments(payload)
        try:
            self._bound(arguments)
        except TypeError as error:
            # Names of parameters only: no values are shown.
            raise RejectedJob(f"Malformed job payload: {self.name}: {error}") from None
        return arguments

    def key_of(self, arguments: Mapping[str, Any]) -> str | None:
        """Return the key of a job; a key function gets the task's arguments by name."""
        if not callable(self.key):
            return self.key
        return self.key(**self._named(arguments, defaults=True))

    def is_payload(self, stored: Any, wanted: Mapping[str, Any]) -> bool:
        """Tell whether a task was enqueued so: by its parameters' names, or by args and kwargs."""
        try:
            named = self._named(stored, defaults=False)
        except (TypeError, AttributeError):
            return False  # of other code, or of an older signature
        return wanted in (named, {name: stored[name] for name in ("args", "kwargs")})

    def _named(self, arguments: Mapping[str, Any], *, defaults: bool) -> dict[str, Any]:
        bound = self._bound(arguments)
        if defaults:
            bound.apply_defaults()
        named = dict(bound.arguments)
        if self.task.takes_context:
            del named["context"]
        for parameter in bound.signature.parameters.values():
            if parameter.kind is parameter.VAR_KEYWORD:
                named |= named.pop(parameter.name, {})
            elif parameter.kind is parameter.VAR_POSITIONAL and parameter.name in named:
                named[parameter.name] = list(named[parameter.name])
        return named

    def _bound(self, arguments: Mapping[str, Any]) -> inspect.BoundArguments:
        args, kwargs = arguments.get("args"), arguments.get("kwargs")
        if not isinstance(args, list) or not isinstance(kwargs, dict):
            raise TypeError("args must be a list and kwargs an object")
        first = (None,) if self.task.takes_context else ()
        return inspect.signature(self.task.func).bind(*first, *args, **kwargs)


def declaration_of(task: Task) -> TaskDeclaration:
    """Return the task's declaration, which is registered from now on.

    Raises ImproperlyConfigured for a policy that is none, and for a job type of the same name.
    """
    known = registry.get(task.module_path)
    if isinstance(known, TaskDeclaration) and known.task.func is task.func:
        return known
    source = f"@task on {task.module_path}"
    declaration = TaskDeclaration(
        handler=_handler_of(task),
        name=task.module_path,
        queue=task.queue_name,
        priority=int(task.priority),
        takes_context=True,
        task=task,
        **_policy_of(task, source),
    )
    registry.add(declaration, source)
    return declaration


def _policy_of(task: Task, source: str) -> dict[str, Any]:
    own = {name: getattr(task, name, None) for name in ("max_attempts", "backoff", "timeout")}
    policy = {
        **policy_of(task.func),
        **{name: value for name, value in own.items() if value is not None},
    }
    if policy.get("atomic") and inspect.iscoroutinefunction(inspect.unwrap(task.func)):
        raise ImproperlyConfigured(
            f"{source}: atomic=True is for plain functions: a transaction is bound to a thread."
        )
    return policy


def _handler_of(task: Task) -> Callable[..., Any]:
    function, takes_context = task.func, task.takes_context

    def handler(
        context: Any,
        args: list[Any],
        kwargs: dict[str, Any],
        backend: str = "default",
        run_after: str | None = None,
    ) -> Any:
        first = (task_context(context),) if takes_context else ()
        return function(*first, *args, **kwargs)

    handler.__module__ = function.__module__
    handler.__name__, handler.__qualname__ = function.__name__, function.__qualname__
    return handler
