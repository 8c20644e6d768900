"""The registry of the names that a worker may run, and what it refuses to hold.

The registry is the allow-list: a job row names an entry here, never a path to import.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from django.core.exceptions import ImproperlyConfigured

from django_leasequeue.codec import clean_text
from django_leasequeue.declaration import Declaration
from django_leasequeue.exceptions import RejectedJob, ScheduleError
from django_leasequeue.grid import checked_catch_up
from django_leasequeue.signatures import parameters_of

__all__ = ["Declaration", "Registry", "registry"]

_REFUSED_KINDS: dict[Any, str] = {
    inspect.Parameter.VAR_POSITIONAL: "*args: a payload is a JSON object, its values have names",
    inspect.Parameter.POSITIONAL_ONLY: "a positional-only parameter: payloads are passed by name",
}
_LARGEST = 32_767


class _Entry(NamedTuple):
    """A declaration, where it is written, and the run of that module's text that made it."""

    job_type: Declaration
    source: str
    spec: Any


class Registry:
    """The job types that this process knows, by name."""

    def __init__(self) -> None:
        self._entries: dict[str, _Entry] = {}
        self._resolvers: list[Callable[[str], Declaration | None]] = []

    def add(self, job_type: Declaration, source: str | None = None) -> None:
        """Register a job type; `source` says in errors where it is declared.

        Raises ImproperlyConfigured for what can never run, and for a name that is declared
        already. The same handler from the same source again is a module's reload, unless one and
        the same run of the module's text has declared both.
        """
        source = source or f"@job on {_origin(job_type)}"
        reason = _reason_to_refuse(job_type)
        if reason:
            raise ImproperlyConfigured(f"{source}: {reason}.")
        # The import system makes a new spec each time that it runs a module's text.
        spec = getattr(_function(job_type.handler), "__globals__", {}).get("__spec__")
        entry = _Entry(job_type, source, spec)
        known = self._entries.get(job_type.name)
        if known is not None and _is_other(known, entry):
            raise ImproperlyConfigured(
                f"Two job types are named {job_type.name!r}: {known.source} and {source}. "
                "Give one of them another name."
            )
        self._entries[job_type.name] = entry

    def get(self, name: str) -> Declaration | None:
        """Return the job type called `name`, or None."""
        entry = self._entries.get(name)
        return None if entry is None else entry.job_type

    def find(self, name: str) -> Declaration | None:
        """Return the job type called `name`, which may import a module of the project, or None.

        Raises what such a module raises.
        """
        known = self.get(name)
        for resolve in self._resolvers:
            known = known or resolve(name)
        return known

    def resolve_with(self, resolve: Callable[[str], Declaration | None]) -> None:
        """Ask `resolve` for names that are not registered; it returns what it has registered."""
        if resolve not in self._resolvers:
            self._resolvers.append(resolve)

    def remove(self, name: str) -> None:
        """Forget a job type; nothing happens when there is none."""
        self._entries.pop(name, None)

    def __iter__(self) -> Iterator[Declaration]:
        return iter([entry.job_type for entry in self._entries.values()])


registry = Registry()


def _origin(job_type: Declaration) -> str:
    handler = job_type.handler
    return f"{handler.__module__}.{getattr(handler, '__qualname__', type(handler).__qualname__)}"


def _is_other(known: _Entry, new: _Entry) -> bool:
    """Tell whether these are two declarations, rather than one that is made again."""
    if (known.source, _origin(known.job_type)) != (new.source, _origin(new.job_type)):
        return True
    if new.spec is None or new.spec is not known.spec:
        return False  # a reload; or a prompt, where a function is written anew
    one, other = (_function(entry.job_type.handler) for entry in (known, new))
    return getattr(one, "__code__", None) != getattr(other, "__code__", None)


def _function(handler: Any) -> Any:
    """Return the function that runs, beneath its class and its decorators."""
    return inspect.unwrap(getattr(handler, "handle", handler))


def _reason_to_refuse(job_type: Declaration) -> str:
    """Return why this declaration can never run, empty for one that can."""
    for check in (_check_names, _check_class, _check_parameters, _check_numbers, _check_callables):
        if reason := check(job_type):
            return reason
    return _check_key(job_type) or _check_version(job_type) or _check_schedule(job_type)


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
    if job_type.atomic and _is_coroutine(function):
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


def _check_schedule(job_type: Declaration) -> str:
    try:
        checked_catch_up(job_type.catch_up)
        if job_type.rule is None:
            alone = job_type.timezone is not None or job_type.catch_up != "latest"
            return "timezone and catch_up need every or cron" if alone else ""
        job_type.arguments({})
    except ScheduleError as error:
        return str(error)
    except RejectedJob:
        return "a tick has no payload, so with every or cron each parameter needs a default"
    if isinstance(job_type.key, str) and job_type.key_until == "forever":
        return "with every or cron its key must have key_until='finished', or one tick is all"
    return ""


def _is_function(value: object) -> bool:
    """Tell whether it can be called where nothing awaits."""
    return callable(value) and not inspect.iscoroutinefunction(value)


def _is_coroutine(function: Any) -> bool:
    """Tell whether it is a coroutine function, or a decorator's function around one."""
    return any(map(inspect.iscoroutinefunction, (function, inspect.unwrap(function))))


def _is_exception(kind: object) -> bool:
    return inspect.isclass(kind) and issubclass(kind, BaseException)
