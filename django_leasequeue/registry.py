"""Job types as declared, and the registry of names a worker may run.

The registry is the allow-list: a job row names an entry here, never a path to import.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from django.core.exceptions import ImproperlyConfigured

from django_leasequeue.codec import clean_text
from django_leasequeue.exceptions import RejectedJob
from django_leasequeue.retry import Backoff

__all__ = ["Declaration", "Registry", "registry"]

_REFUSED_KINDS: dict[Any, str] = {
    inspect.Parameter.VAR_POSITIONAL: "*args: a payload is a JSON object, its values have names",
    inspect.Parameter.POSITIONAL_ONLY: "a positional-only parameter: payloads are passed by name",
}


@dataclass(frozen=True, eq=False)
class Declaration:
    """A handler with its name and its policy: what a job type is to the core and the worker.

    Times are seconds. None means "as the settings say" (`max_attempts`, `backoff`, `lease`) or
    "no limit" (`timeout`).
    """

    handler: Callable[..., Any]
    name: str
    queue: str = "default"
    priority: int = 0
    max_attempts: int | None = None
    max_crashes: int | None = None
    backoff: Backoff | None = None
    timeout: float | None = None
    lease: float | None = None
    atomic: bool = False
    takes_context: bool = False
    permanent: tuple[type[BaseException], ...] = ()
    failed: Callable[..., Any] | None = None

    @cached_property
    def signature(self) -> inspect.Signature:
        """The handler's parameters without its context."""
        signature = inspect.signature(self.handler)
        parameters = list(signature.parameters.values())
        return signature.replace(parameters=parameters[1:] if self.takes_context else parameters)

    def payload_from(self, args: tuple[Any, ...], payload: dict[str, Any]) -> dict[str, Any]:
        """Return the payload that binds `args` to the handler's parameter names.

        Raises TypeError, as calling the handler would, when they do not fit.
        """
        bound = self._bind(args, payload)
        return {
            name: value
            for parameter in self.signature.parameters.values()
            if parameter.name in bound.arguments
            for name, value in _named(parameter, bound.arguments[parameter.name])
        }

    def check_payload(self, payload: dict[str, Any]) -> None:
        """Raise RejectedJob when the handler cannot be called with `payload`."""
        try:
            self._bind((), payload)
        except TypeError as error:
            # Names of parameters only: bind() shows no values.
            raise RejectedJob(f"Malformed job payload: {error}") from None

    def _bind(self, args: tuple[Any, ...], payload: dict[str, Any]) -> inspect.BoundArguments:
        try:
            return self.signature.bind(*args, **payload)
        except TypeError as error:
            raise TypeError(f"{self.name}: {error}") from None


def _named(parameter: inspect.Parameter, value: Any) -> list[tuple[str, Any]]:
    if parameter.kind is inspect.Parameter.VAR_KEYWORD:
        return list(value.items())
    return [(parameter.name, value)]


class Registry:
    """The job types that this process knows, by name."""

    def __init__(self) -> None:
        self._types: dict[str, Declaration] = {}

    def add(self, job_type: Declaration) -> None:
        """Register a job type. Raises ImproperlyConfigured for what can never run."""
        _check_declaration(job_type)
        known = self._types.get(job_type.name)
        if known is not None and _origin(known) != _origin(job_type):
            raise ImproperlyConfigured(
                f"Two handlers are named {job_type.name!r}: {_origin(known)} and "
                f"{_origin(job_type)}. Give one of them another name."
            )
        self._types[job_type.name] = job_type

    def get(self, name: str) -> Declaration | None:
        """Return the job type called `name`, or None."""
        return self._types.get(name)

    def remove(self, name: str) -> None:
        """Forget a job type; nothing happens when there is none."""
        self._types.pop(name, None)

    def __iter__(self) -> Iterator[Declaration]:
        return iter(list(self._types.values()))


registry = Registry()


def _origin(job_type: Declaration) -> str:
    return f"{job_type.handler.__module__}.{job_type.handler.__qualname__}"


def _refuse(job_type: Declaration, reason: str) -> None:
    raise ImproperlyConfigured(f"@job on {_origin(job_type)}: {reason}.")


def _check_parameters(job_type: Declaration) -> None:
    parameters = list(inspect.signature(job_type.handler).parameters.values())
    for parameter in parameters:
        if reason := _REFUSED_KINDS.get(parameter.kind):
            _refuse(job_type, f"its handler takes {reason}")
    if job_type.takes_context and (not parameters or parameters[0].name != "context"):
        _refuse(job_type, "takes_context=True needs a first parameter named 'context'")


def _check_declaration(job_type: Declaration) -> None:
    if not job_type.name or clean_text(job_type.name, 255) != job_type.name:
        _refuse(job_type, "the name must have 1 to 255 characters that every database can store")
    _check_parameters(job_type)
    if inspect.iscoroutinefunction(job_type.handler) and job_type.atomic:
        _refuse(job_type, "atomic=True is for plain functions: a transaction is bound to a thread")
    _check_numbers(job_type)
    _check_callables(job_type)


def _check_numbers(job_type: Declaration) -> None:
    for name in ("max_attempts", "max_crashes"):
        value = getattr(job_type, name)
        if value is not None and not (type(value) is int and 1 <= value <= 32_767):
            _refuse(job_type, f"{name} must be a whole number between 1 and 32767")
    for name in ("timeout", "lease"):
        value = getattr(job_type, name)
        if value is not None and not (type(value) in (int, float) and 0 < value < math.inf):
            _refuse(job_type, f"{name} must be a number of seconds above 0")
    if not (type(job_type.priority) is int and -100 <= job_type.priority <= 100):
        _refuse(job_type, "priority must be a whole number between -100 and 100")


def _check_callables(job_type: Declaration) -> None:
    permanent: object = job_type.permanent
    if not isinstance(permanent, tuple) or not all(map(_is_exception, permanent)):
        _refuse(job_type, "permanent must be a tuple of exception classes")
    failed: object = job_type.failed
    if failed is not None and not callable(failed):
        _refuse(job_type, "failed must be a function (context, error)")
    backoff: object = job_type.backoff
    if backoff is not None and not callable(getattr(backoff, "delay_for", backoff)):
        _refuse(job_type, "backoff must be a strategy or a function (exception, context)")


def _is_exception(kind: object) -> bool:
    return inspect.isclass(kind) and issubclass(kind, BaseException)
