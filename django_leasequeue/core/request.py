"""A job to be enqueued, checked whole before any SQL."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Literal, NamedTuple, TypedDict

from django.utils import timezone

from django_leasequeue.codec import digest_key, encode
from django_leasequeue.conf import get_conf
from django_leasequeue.declaration import Declaration, KeyUntil
from django_leasequeue.exceptions import EnqueueError, RejectedJob
from django_leasequeue.registry import registry
from django_leasequeue.retry import as_seconds

__all__ = [
    "Conflict",
    "KeyUntil",
    "Options",
    "OptionsUsing",
    "Request",
    "build_request",
    "checked_moment",
    "checked_queue",
]

Conflict = Literal["return", "replace", "raise"]


class Options(TypedDict, total=False):
    """The options of an enqueue, as `enqueue` describes them."""

    queue: str | None
    key: str | None
    key_until: KeyUntil | None
    on_conflict: Conflict
    priority: int | None
    delay: float | timedelta | None
    run_after: datetime | None
    expires: datetime | float | timedelta | None
    max_attempts: int | None
    timeout: float | timedelta | None


class OptionsUsing(Options, total=False):
    """The same, and the alias of the queue's database."""

    using: str | None


_LATEST_YEAR = 9000  # every server's range, with room for time zones and backoffs


Column = Literal["idempotency_key", "live_key"]


class Identity(NamedTuple):
    """The unique key of a job: in which queue, in which column, and its digest."""

    queue: str
    column: Column
    digest: str

    @classmethod
    def of(cls, queue: str, idempotency_key: str, live_key: str | None) -> Identity:
        """Return the identity of a job with these columns."""
        if live_key is None:
            return cls(queue, "idempotency_key", idempotency_key)
        return cls(queue, "live_key", live_key)


@dataclass(frozen=True, slots=True)
class Request:
    """What will be inserted. Times are an aware datetime or a delay in seconds, None is now."""

    job_type: str
    queue: str
    payload: str = field(repr=False)
    idempotency_key: str
    live_key: str | None
    keyed: bool
    on_conflict: Conflict
    priority: int
    max_attempts: int
    max_crashes: int
    available: datetime | float | None
    expires: datetime | float | None
    timeout: float | None
    payload_version: int = 1
    context: str = field(default="{}", repr=False)
    signature: str = ""
    #: The schedule that it is a job of, and the tick, None for one made by hand.
    schedule: str = ""
    tick_at: datetime | None = None

    @property
    def identity(self) -> Identity:
        """What makes two requests the same job: the queue and whichever key is unique."""
        return Identity.of(self.queue, self.idempotency_key, self.live_key)

    @property
    def identities(self) -> Sequence[Identity]:
        """All that a job can have taken, the one that decides first.

        A live key is given up when its job ends; what a schedule has run by hand is not run again.
        """
        forever = Identity.of(self.queue, self.idempotency_key, None)
        return (self.identity,) if self.live_key is None else (self.identity, forever)


def build_request(
    job_type: str | Declaration,
    payload: Mapping[str, Any] | None = None,
    *,
    queue: str | None = None,
    key: str | None = None,
    key_until: KeyUntil | None = None,
    on_conflict: Conflict = "return",
    priority: int | None = None,
    delay: float | timedelta | None = None,
    run_after: datetime | None = None,
    expires: datetime | float | timedelta | None = None,
    max_attempts: int | None = None,
    timeout: float | timedelta | None = None,
) -> Request:
    """Return the checked request.

    Raises EnqueueError, and TypeError for arguments that exclude each other. The messages name
    the argument and never show payload values.
    """
    declared, name = _declaration(job_type)
    conf = get_conf()
    encoded, arguments = _payload(declared, name, payload, conf.MAX_PAYLOAD_BYTES)
    if key is None and declared is not None and declared.key is not None:
        key = _declared_key(declared, arguments)
    until = _first(key_until, declared and declared.key_until, "forever")
    idempotency_key, live_key = _keys(key, _choice("key_until", until, "forever", "finished"))
    wanted_attempts = _first(max_attempts, declared and declared.max_attempts, conf.MAX_ATTEMPTS)
    wanted_crashes = _first(declared and declared.max_crashes, conf.MAX_CRASHES)
    return Request(
        job_type=_name("job type", name, 255),
        queue=checked_queue(_first(queue, declared and declared.queue, "default")),
        payload=encoded,
        idempotency_key=idempotency_key,
        live_key=live_key,
        keyed=key is not None,
        on_conflict=_choice("on_conflict", on_conflict, "return", "replace", "raise"),
        priority=_whole("priority", _first(priority, declared and declared.priority, 0), -100, 100),
        max_attempts=_whole("max_attempts", wanted_attempts, 1, 32_767),
        max_crashes=_whole("max_crashes", wanted_crashes, 1, 32_767),
        available=checked_moment(delay, run_after),
        expires=_moment("expires", expires)
        if isinstance(expires, datetime)
        else _span("expires", expires),
        timeout=_timeout(timeout),
        payload_version=declared.version if declared else 1,
    )


def checked_queue(queue: Any) -> str:
    """Return a queue's name; raise EnqueueError when it can be none."""
    return _name("queue", queue, 64)


def checked_moment(delay: Any, run_after: Any) -> datetime | float | None:
    """Return when a job is due: an aware datetime, seconds from now, or None for now.

    Raises EnqueueError for what is no such moment, and TypeError when both are given.
    """
    if delay is not None and run_after is not None:
        raise TypeError("give delay or run_after, not both")
    return _moment("run_after", run_after) if run_after is not None else _span("delay", delay)


def _declaration(job_type: str | Declaration) -> tuple[Declaration | None, str]:
    if isinstance(job_type, Declaration):
        return job_type, job_type.name
    if not isinstance(job_type, str):
        raise EnqueueError("the job type is its name or a function declared with @job")
    return registry.get(job_type), job_type


def _first(*values: Any) -> Any:
    return next((value for value in values if value is not None), None)


def _payload(
    declared: Declaration | None, name: str, payload: Mapping[str, Any] | None, limit: int
) -> tuple[str, dict[str, Any]]:
    """Return the payload as JSON, and the arguments that the handler will get of it."""
    if payload is not None and not isinstance(payload, Mapping):
        raise EnqueueError(
            f"the payload of {name!r} is a {type(payload).__name__}; it must be a dict"
        )
    try:
        values = dict(payload or {}) if declared is None else declared.as_json(payload or {})
        names = () if declared is None else declared.signature.names
        encoded = encode(values, what="payload", limit=limit, names=names)
        return encoded, values if declared is None else declared.arguments(values)
    except (TypeError, ValueError, RejectedJob) as error:
        raise EnqueueError(f"{name}: {error}") from None


def _declared_key(declared: Declaration, arguments: Mapping[str, Any]) -> str | None:
    try:
        return declared.key_of(arguments)
    except Exception as error:
        raise EnqueueError(
            f"{declared.name}: its key function raised {type(error).__qualname__}"
        ) from error


def _name(what: str, value: Any, limit: int) -> str:
    if not isinstance(value, str) or not 1 <= len(value) <= limit:
        raise EnqueueError(f"a {what} is a text of 1 to {limit} characters")
    try:
        encode(value, what=what, limit=limit * 4 + 2 + limit)
    except ValueError as error:
        raise EnqueueError(str(error)) from None
    return value


def _choice(what: str, value: Any, *allowed: str) -> Any:
    if value not in allowed:
        raise EnqueueError(f"{what} is one of {', '.join(map(repr, allowed))}, not {value!r}")
    return value


def _whole(what: str, value: Any, low: int, high: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise EnqueueError(f"{what} is a whole number from {low} to {high}, not {value!r}")
    return value


def _span(what: str, value: Any) -> float | None:
    if value is None:
        return None
    try:
        return as_seconds(value)
    except ValueError as error:
        raise EnqueueError(f"{what}: {error}") from None


def _timeout(value: float | timedelta | None) -> float | None:
    seconds = _span("timeout", value)
    if seconds == 0:
        raise EnqueueError("timeout must be above 0 seconds; leave it out for no limit")
    return seconds


def _moment(what: str, value: Any) -> datetime:
    if not isinstance(value, datetime):
        raise EnqueueError(f"{what} is a datetime, not a {type(value).__name__}")
    if not 1970 < value.year < _LATEST_YEAR:
        raise EnqueueError(f"{what} must be in the years 1971 to {_LATEST_YEAR - 1}")
    if timezone.is_aware(value):
        return value
    from django.conf import settings

    if settings.USE_TZ:
        raise EnqueueError(
            f"{what} has no time zone; use django.utils.timezone or an aware datetime"
        )
    return timezone.make_aware(value)


def _keys(key: str | None, key_until: KeyUntil) -> tuple[str, str | None]:
    """Return (idempotency_key, live_key)."""
    if key is None:
        return secrets.token_hex(32), None
    try:
        digest = digest_key(key)
    except (TypeError, ValueError) as error:
        raise EnqueueError(str(error)) from None
    if key_until == "forever":
        return digest, None
    unique = hashlib.sha256(f"{digest}:{secrets.token_hex(16)}".encode()).hexdigest()
    return unique, digest
