"""A job type as declared: its handler, its policy, and what its handler makes of a payload."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cached_property
from typing import Any, Literal, NamedTuple, TypedDict

from django.conf import settings

from django_leasequeue.codec import masked
from django_leasequeue.exceptions import RejectedJob, UnknownJobType
from django_leasequeue.grid import Rule
from django_leasequeue.retry import Backoff
from django_leasequeue.signatures import Signature, handler_signature, parameters_of

__all__ = [
    "Accepted",
    "Declaration",
    "Key",
    "KeyUntil",
    "Policy",
    "Upcast",
    "names_context",
    "policy_for",
]

KeyUntil = Literal["forever", "finished"]
Key = str | Callable[..., str | None]
Upcast = Callable[[dict[str, Any], int], dict[str, Any]]


class Policy(TypedDict, total=False):
    """The options of `@job`, for type checkers: the fields of `Declaration` after the name."""

    queue: str
    priority: int
    max_attempts: int | None
    max_crashes: int | None
    backoff: Backoff | None
    timeout: float | None
    lease: float | None
    atomic: bool
    takes_context: bool
    permanent: tuple[type[BaseException], ...]
    failed: Callable[..., Any] | None
    sensitive: tuple[str, ...]
    key: Key | None
    key_until: KeyUntil
    version: int
    upcast: Upcast | None
    every: float | timedelta | None
    cron: str | None
    timezone: str | None
    catch_up: str


class _Hook:
    """The `failed` hook of a handler that is a class: a fresh object's method."""

    def __init__(self, handler: Any) -> None:
        self._handler = handler

    def __call__(self, context: Any, error: BaseException) -> Any:
        return self._handler().failed(context, error)


def policy_for(handler: Callable[..., Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return a declaration's options, with what a handler that is a class says by its methods."""
    if not inspect.isclass(handler) or not hasattr(handler, "handle"):
        return dict(given)
    policy = {"takes_context": names_context(handler), **given}
    if hasattr(handler, "failed"):
        if policy.get("failed") is not None:
            raise TypeError("it has a method failed, so the option failed must be left out")
        policy["failed"] = _Hook(handler)
    return policy


def names_context(handler: Callable[..., Any]) -> bool:
    """Tell whether the handler's first parameter is called `context`."""
    return [item.name for item in parameters_of(handler)][:1] == ["context"]


class Accepted(NamedTuple):
    """A payload in its present version, and the handler's arguments that it makes."""

    payload: dict[str, Any]
    arguments: dict[str, Any]

    def __repr__(self) -> str:
        return "<Accepted>"  # no values


@dataclass(frozen=True, eq=False)
class Declaration:
    """A handler with its name and its policy: what a job type is to the core and the worker.

    The handler is a function, a coroutine function, or a class of which each attempt makes an
    instance and calls `handle`. Times are seconds. None means "as the settings say"
    (`max_attempts`, `max_crashes`, `backoff`, `timeout`), for `lease` "as the worker's".
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
    sensitive: tuple[str, ...] = ()
    key: Key | None = field(default=None, repr=False)
    key_until: KeyUntil = "forever"
    version: int = 1
    upcast: Upcast | None = None
    every: float | timedelta | None = None
    cron: str | None = None
    timezone: str | None = None
    catch_up: str = "latest"

    @cached_property
    def rule(self) -> Rule | None:
        """When its schedule ticks, None without `every` and `cron`; raises ScheduleError.

        Without a `timezone` a cron expression is in the project's TIME_ZONE.
        """
        if self.every is None and self.cron is None:
            return None
        zone = self.timezone or ("UTC" if self.cron is None else settings.TIME_ZONE)
        return Rule.of(cron=self.cron, every=self.every, timezone=zone)

    @cached_property
    def signature(self) -> Signature:
        """The handler's parameters without its context, and what their annotations ask for."""
        return handler_signature(self.handler, skips=int(self.takes_context))

    def begin(self) -> Callable[..., Any]:
        """Return what is to be called for one attempt: the function, or a fresh object's method."""
        if not inspect.isclass(self.handler):
            return self.handler
        fresh: Any = self.handler()
        method: Callable[..., Any] = fresh.handle
        return method

    def payload_from(self, args: tuple[Any, ...], payload: dict[str, Any]) -> dict[str, Any]:
        """Return the payload that binds `args` to the handler's parameter names.

        Raises TypeError, as calling the handler would, when they do not fit.
        """
        try:
            return self.signature.payload_from(args, payload)
        except TypeError as error:
            raise TypeError(f"{self.name}: {error}") from None

    def as_json(self, payload: Mapping[str, Any]) -> dict[str, Any]:
        """Return a payload that may hold typed values as what is stored of it."""
        return self.signature.as_json(payload)

    def is_payload(self, stored: Any, wanted: Mapping[str, Any]) -> bool:
        """Tell whether a stored payload is `wanted`, as the handler's author would write it."""
        return bool(stored == wanted)

    def arguments(self, payload: dict[str, Any]) -> dict[str, Any]:
        """Return the arguments for the handler; raise RejectedJob when it cannot be called so."""
        try:
            return self.signature.arguments(payload)
        except TypeError as error:
            # Names of parameters and fields only: no values are shown.
            raise RejectedJob(f"Malformed job payload: {self.name}: {error}") from None

    def check_payload(self, payload: dict[str, Any]) -> None:
        """Raise RejectedJob when the handler cannot be called with `payload`."""
        self.arguments(payload)

    def accept(self, payload: dict[str, Any], version: int) -> Accepted:
        """Return a stored payload as this declaration has it, and the handler's arguments.

        An older one is upcast first. Raises UnknownJobType when it is newer, for a worker with
        newer code, and RejectedJob when it does not fit.
        """
        payload = self.present(payload, version)
        return Accepted(payload, self.arguments(payload))

    def present(self, payload: dict[str, Any], version: int) -> dict[str, Any]:
        """Return a payload of `version` in the present one. Raises what `accept` raises."""
        if version > self.version:
            raise UnknownJobType(
                f"Unsupported payload version {version}: this worker knows {self.version}"
            )
        if version == self.version or self.upcast is None:
            return payload
        upcast: object = self.upcast(payload, version)
        if not isinstance(upcast, dict):
            raise RejectedJob(f"Malformed job payload: {self.name}: upcast returned no dict")
        return upcast

    def key_of(self, arguments: Mapping[str, Any]) -> str | None:
        """Return the key of a job whose handler gets `arguments`; None for a job without one.

        A key function gets what the handler gets, defaults included. Raises what it raises.
        """
        if not callable(self.key):
            return self.key
        return self.key(**self.signature.with_defaults(arguments))

    def masked(self, data: Any) -> Any:
        """Return JSON data of a job for human eyes: without what is declared sensitive."""
        return masked(data, self.sensitive)
