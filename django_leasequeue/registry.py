"""The registry of the names that a worker may run, and what it refuses to hold.

The registry is the allow-list: a job row names an entry here, never a path to import.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Iterator
from typing import Any

from django.core.exceptions import ImproperlyConfigured

from django_leasequeue.codec import clean_text
from django_leasequeue.declaration import Declaration
from django_leasequeue.signatures import parameters_of

__all__ = ["Declaration", "Registry", "registry"]

_REFUSED_KINDS: dict[Any, str] = {
    inspect.Parameter.VAR_POSITIONAL: "*args: a payload is a JSON object, its values have names",
    inspect.Parameter.POSITIONAL_ONLY: "a positional-only parameter: payloads are passed by name",
}
_LARGEST = 32_767


class Registry:
    """The job types that this process knows, by name."""

    def __init__(self) -> None:
        self._types: dict[str, Declaration] = {}
        self._sources: dict[str, str] = {}

    def add(self, job_type: Declaration, source: str | None = None) -> None:
        """Register a job type; `source` says in errors where it is declared.

        Raises ImproperlyConfigured for what can never run, and for a name that is declared
        already. The same handler from the same source again is a module's reload.
        """
        source = source or f"@job on {_origin(job_type)}"
        reason = _reason_to_refuse(job_type)
        if reason:
            raise ImproperlyConfigured(f"{source}: {reason}.")
        known = self._types.get(job_type.name)
        if known is not None and (self._sources[job_type.name], _origin(known)) != (
            source,
            _origin(job_type),
        ):
            raise ImproperlyConfigured(
                f"Two job types are named {job_type.name!r}: {self._sources[job_type.name]} and "
                f"{source}. Give one of them another name."
            )
        self._types[job_type.name] = job_type
        self._sources[job_type.name] = source

    def get(self, name: str) -> Declaration | None:
        """Return the job type called `name`, or None."""
        return self._types.get(name)

    def remove(self, name: str) -> None:
        """Forget a job type; nothing happens when there is none."""
        self._types.pop(name, None)
        self._sources.pop(name, None)

    def __iter__(self) -> Iterator[Declaration]:
        return iter(list(self._types.values()))


registry = Registry()


def _origin(job_type: Declaration) -> str:
    handler = job_type.handler
    return f"{handler.__module__}.{getattr(handler, '__qualname__', type(handler).__qualname__)}"


def _reason_to_refuse(job_type: Declaration) -> str:
    """Return why this declaration can never run, empty for one that can."""
    for check in (_check_names, _check_class, _check_parameters, _check_numbers, _check_callables):
        if reason := check(job_type):
            return reason
    return _check_key(job_type) or _check_version(job_type)


def _is_name(value: object, longest: int) -> bool:
    return isinstance(value, str) and value != "" and clean_text(value, longest) == value


def _check_names(job_type: Declaration) -> str:
    if not _is_name(job_type.name, 255):
        return "the name must have 1 to 255 characters that every database can store"
    if not _is_name(job_type.queue, 64):
        return "queue must have 1 to 64 characters that every database can store"
    names: object = job_type.sensitive
    if not isinstance(names, tuple) or not all(isinstance(name, str) and name for name in names):
        return "sensitive must be a tuple of names of payload fields"
    return ""


def _check_class(job_type: Declaration) -> str:
    handler: Any = job_type.handler
    if not inspect.isclass(handler):
        return ""
    if not callable(getattr(handler, "handle", None)):
        return "a class that handles jobs needs a method handle(self, **payload)"
    if not callable(getattr(handler, "failed", len)):
        return "failed must be a method failed(self, context, error)"
    if inspect.isabstract(handler):
        return "the class is abstract: no instance of it can be made"
    try:
        inspect.signature(handler).bind()
    except TypeError:
        return "an instance is made for each attempt, so its __init__ must need no arguments"
    except ValueError:  # no Python code to look at
        pass
    return ""


def _check_parameters(job_type: Declaration) -> str:
    parameters = parameters_of(job_type.handler)
    for parameter in parameters:
        if reason := _REFUSED_KINDS.get(parameter.kind):
            return f"its handler takes {reason}"
    if job_type.takes_context and (not parameters or parameters[0].name != "context"):
        return "takes_context=True needs a first parameter named 'context'"
    function = getattr(job_type.handler, "handle", job_type.handler)
    if job_type.atomic and inspect.iscoroutinefunction(function):
        return "atomic=True is for plain functions: a transaction is bound to a thread"
    return ""


def _check_numbers(job_type: Declaration) -> str:
    for name in ("max_attempts", "max_crashes", "version"):
        value = getattr(job_type, name)
        optional = name != "version"
        if not (value is None and optional) and not (type(value) is int and 1 <= value <= _LARGEST):
            return f"{name} must be a whole number between 1 and {_LARGEST}"
    for name in ("timeout", "lease"):
        value = getattr(job_type, name)
        if value is not None and not (type(value) in (int, float) and 0 < value < math.inf):
            return f"{name} must be a number of seconds above 0"
    if not (type(job_type.priority) is int and -100 <= job_type.priority <= 100):
        return "priority must be a whole number between -100 and 100"
    return ""


def _check_callables(job_type: Declaration) -> str:
    permanent: object = job_type.permanent
    if not isinstance(permanent, tuple) or not all(map(_is_exception, permanent)):
        return "permanent must be a tuple of exception classes"
    failed: object = job_type.failed
    if failed is not None and not callable(failed):
        return "failed must be a function (context, error)"
    backoff: object = job_type.backoff
    if backoff is not None and not callable(getattr(backoff, "delay_for", backoff)):
        return "backoff must be a strategy or a function (exception, context)"
    return ""


def _check_key(job_type: Declaration) -> str:
    key: object = job_type.key
    if key is not None and not _is_function(key) and not _is_name(key, 1_000_000):
        return "key must be a function (**payload) that returns a text or None, or a text"
    if job_type.key_until not in ("forever", "finished"):
        return "key_until must be 'forever' or 'finished'"
    return ""


def _check_version(job_type: Declaration) -> str:
    if job_type.upcast is None:
        return ""
    if not _is_function(job_type.upcast):
        return "upcast must be a function (payload, from_version) that returns a payload"
    if job_type.version == 1:
        return "upcast is for payloads of earlier versions: version must be above 1"
    return ""


def _is_function(value: object) -> bool:
    """Tell whether it can be called where nothing awaits."""
    return callable(value) and not inspect.iscoroutinefunction(value)


def _is_exception(kind: object) -> bool:
    return inspect.isclass(kind) and issubclass(kind, BaseException)
