"""The `LEASEQUEUE` setting: names, types, defaults and bounds, read once and checked whole."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import lru_cache
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.core.signals import setting_changed
from django.utils.module_loading import import_string

from django_leasequeue.retention import retention_of
from django_leasequeue.retry import Backoff, Exponential

__all__ = ["Conf", "get_conf"]

Jobs = Mapping[str, Any] | Sequence[Any] | Path


def _number(name: str, value: Any, low: float, high: float) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ImproperlyConfigured(
            f"LEASEQUEUE[{name!r}] must be a number, not {value!r}. "
            "Convert values that come from the environment with int() or float()."
        )
    if not low <= value <= high:
        raise ImproperlyConfigured(
            f"LEASEQUEUE[{name!r}] must be between {low:g} and {high:g}, not {value!r}."
        )
    return value


#: The bounds of every numeric setting, both ends allowed; seconds, bytes or counts.
BOUNDS: dict[str, tuple[float, float]] = {
    "LEASE": (0.5, 86_400),
    "MIN_LEASE": (0.5, 86_400),
    "MAX_ATTEMPTS": (1, 32_767),
    "MAX_CRASHES": (1, 32_767),
    "KILL_AFTER": (0, 86_400),
    "PROCESSES": (1, 1_000),
    "THREADS": (1, 1_000),
    "MAX_PAYLOAD_BYTES": (2, 256 * 1024 * 1024),
    "MAX_RESULT_BYTES": (2, 256 * 1024 * 1024),
    "POLL_MIN": (0.001, 3_600),
    "POLL_MAX": (0.001, 3_600),
    "GRACE": (0, 86_400),
    "DATABASE_OUTAGE_LIMIT": (0, 86_400),
}

#: The bounds of a time limit, for those who may also have none.
TIMEOUT_BOUNDS = (0.001, 10 * 365 * 86_400)

#: Characters of a signing key.
MIN_KEY_LENGTH = 16

_WHOLE = (
    "MAX_ATTEMPTS",
    "MAX_CRASHES",
    "MAX_PAYLOAD_BYTES",
    "MAX_RESULT_BYTES",
    "PROCESSES",
    "THREADS",
)


@dataclass(frozen=True, slots=True)
class Conf:
    """The project's settings. Times are seconds, sizes are bytes of UTF-8 JSON."""

    #: Alias of the database that holds the queue.
    DATABASE: str = "default"
    #: How long a claim is exclusive without a renewal.
    LEASE: float = 60
    #: Shorter leases are refused: the database's own bounds must stay below a quarter of them.
    MIN_LEASE: float = 5
    #: Attempts of a job that declares none.
    MAX_ATTEMPTS: int = 5
    #: Crashes (process died, lease ran out) after which a job is dead.
    MAX_CRASHES: int = 3
    #: Time limit of a job whose type and enqueue say nothing; None: no limit.
    TIMEOUT: float | None = None
    #: From the interrupt of a handler to the kill of its child; a worker takes at most lease / 6.
    KILL_AFTER: float = 5
    #: Children of a worker, and handlers that each of them runs at the same time.
    PROCESSES: int = 1
    THREADS: int = 1
    #: Strategy or callable of jobs that declare none; a dotted path is imported.
    BACKOFF: Backoff = field(default_factory=Exponential)
    MAX_PAYLOAD_BYTES: int = 1024 * 1024
    MAX_RESULT_BYTES: int = 1024 * 1024
    #: "class" stores the class and frames of an unexpected error, "message" its text as well.
    ERROR_DETAIL: str = "class"
    #: How long an idle worker waits before it looks again: from POLL_MIN, growing to POLL_MAX.
    POLL_MIN: float = 0.05
    POLL_MAX: float = 1
    #: What ends that wait when a job was enqueued: nothing ("poll"), a "nudge" by whoever enqueued
    #: it on the same host, or PostgreSQL's "notify".
    WAKEUP: str = "poll"
    #: Where workers have the sockets that are nudged; empty: a folder for temporary files.
    NUDGE_FOLDER: str = ""
    #: How long a stopping worker lets running handlers finish.
    GRACE: float = 30
    #: A worker that cannot reach its database for so long ends with exit code 1.
    DATABASE_OUTAGE_LIMIT: float = 300
    #: What becomes of a job whose type no handler here has: "dead" at once, or "park".
    UNKNOWN_JOB_TYPES: str = "dead"
    #: Worker profiles: what `runworker --profile NAME` runs with, by name.
    WORKERS: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    #: Job types declared as data: entries, a dictionary with them, or the path of a JSON file.
    JOBS: Jobs = ()
    #: How long finished jobs stay before `prune` takes them; empty: for good.
    RETENTION: Mapping[str, Any] = field(default_factory=dict)
    #: Dotted paths of middleware classes, the outermost first.
    MIDDLEWARE: tuple[str, ...] = ()
    #: Secrets that jobs are signed with, the newest first; empty: jobs are not signed. No repr:
    #: settings end up in logs and error pages.
    SIGNING_KEYS: tuple[str, ...] = field(default=(), repr=False)
    #: Who sends it as `Authorization: Bearer` may see the metrics view; empty: users only.
    METRICS_TOKEN: str = field(default="", repr=False)

    def __post_init__(self) -> None:
        for name, (low, high) in BOUNDS.items():
            _number(name, getattr(self, name), low, high)
        if self.TIMEOUT is not None:
            _number("TIMEOUT", self.TIMEOUT, *TIMEOUT_BOUNDS)
        for name in _WHOLE:
            if not isinstance(getattr(self, name), int):
                raise ImproperlyConfigured(f"LEASEQUEUE[{name!r}] must be a whole number.")
        _check_profiles(self.WORKERS)
        retention_of(self.RETENTION)
        if not isinstance(self.JOBS, Mapping | list | tuple | str | Path):
            raise ImproperlyConfigured("LEASEQUEUE['JOBS'] must be a list, a dictionary or a path.")
        _check_texts("MIDDLEWARE", self.MIDDLEWARE, 1, "dotted paths")
        _check_texts("SIGNING_KEYS", self.SIGNING_KEYS, MIN_KEY_LENGTH, "keys")
        _check_token(self.METRICS_TOKEN)
        _check_folder(self.NUDGE_FOLDER)
        self._check_together()

    def _check_together(self) -> None:
        if self.LEASE < self.MIN_LEASE:
            raise ImproperlyConfigured(
                f"LEASEQUEUE['LEASE'] is {self.LEASE:g} s, below MIN_LEASE ({self.MIN_LEASE:g} s)."
            )
        if self.POLL_MIN > self.POLL_MAX:
            raise ImproperlyConfigured("LEASEQUEUE['POLL_MIN'] must not exceed POLL_MAX.")
        if self.ERROR_DETAIL not in ("class", "message"):
            raise ImproperlyConfigured("LEASEQUEUE['ERROR_DETAIL'] is 'class' or 'message'.")
        if self.WAKEUP not in ("poll", "nudge", "notify"):
            raise ImproperlyConfigured("LEASEQUEUE['WAKEUP'] is 'poll', 'nudge' or 'notify'.")
        if self.UNKNOWN_JOB_TYPES not in ("dead", "park"):
            raise ImproperlyConfigured("LEASEQUEUE['UNKNOWN_JOB_TYPES'] is 'dead' or 'park'.")
        if self.DATABASE not in list(settings.DATABASES):  # which compares what has no hash, too
            raise ImproperlyConfigured(
                f"LEASEQUEUE['DATABASE'] is {self.DATABASE!r}, which is no alias in DATABASES."
            )


def _check_texts(name: str, values: Any, shortest: int, what: str) -> None:
    """Refuse what is no list of texts; shows none of them, for they may be secrets."""
    if not isinstance(values, list | tuple):
        raise ImproperlyConfigured(f"LEASEQUEUE[{name!r}] must be a list of {what}.")
    for number, value in enumerate(values):
        if not isinstance(value, str) or len(value) < shortest:
            raise ImproperlyConfigured(
                f"LEASEQUEUE[{name!r}][{number}] must be a text of at least {shortest} characters."
            )


def _check_token(token: Any) -> None:
    """Refuse a token that could be guessed; shows none."""
    if not isinstance(token, str) or 0 < len(token) < MIN_KEY_LENGTH:
        raise ImproperlyConfigured(
            f"LEASEQUEUE['METRICS_TOKEN'] must be a text of at least {MIN_KEY_LENGTH} characters, "
            "or empty."
        )


def _check_folder(folder: Any) -> None:
    """Refuse what two processes could take for two folders."""
    absolute = isinstance(folder, str) and "\0" not in folder and Path(folder).is_absolute()
    if folder != "" and not absolute:
        raise ImproperlyConfigured(
            "LEASEQUEUE['NUDGE_FOLDER'] must be the absolute path of a folder, or empty."
        )


def _check_profiles(profiles: Any) -> None:
    """Refuse what is no dictionary of dictionaries; the keys inside are the worker's business."""
    if not isinstance(profiles, Mapping):
        raise ImproperlyConfigured("LEASEQUEUE['WORKERS'] must be a dictionary of profiles.")
    for name, options in profiles.items():
        if not isinstance(name, str) or not 0 < len(name) <= 100 or not name.isprintable():
            raise ImproperlyConfigured(
                f"LEASEQUEUE['WORKERS']: a profile's name has 1 to 100 printable characters, "
                f"unlike {name!r}."
            )
        if not isinstance(options, Mapping):
            raise ImproperlyConfigured(
                f"LEASEQUEUE['WORKERS'][{name!r}] must be a dictionary of a worker's options, "
                f"not {options!r}."
            )


def _backoff(value: Any) -> Backoff:
    try:
        if isinstance(value, str):
            value = import_string(value)
        if isinstance(value, type):
            value = value()
    except (ImportError, TypeError) as error:
        raise ImproperlyConfigured(f"LEASEQUEUE['BACKOFF'] cannot be used: {error}.") from error
    if not callable(value) and not callable(getattr(value, "delay_for", None)):
        raise ImproperlyConfigured(
            "LEASEQUEUE['BACKOFF'] must be a strategy with delay_for(attempt), a callable "
            "(exception, context) or the dotted path of one."
        )
    backoff: Backoff = value
    return backoff


@lru_cache(maxsize=1)
def get_conf() -> Conf:
    """Return the checked settings; raise ImproperlyConfigured naming the first that is wrong."""
    given = getattr(settings, "LEASEQUEUE", {})
    if not isinstance(given, Mapping):
        raise ImproperlyConfigured("LEASEQUEUE must be a dictionary.")
    known = {item.name for item in fields(Conf)}
    unknown = sorted(map(repr, set(given) - known))
    if unknown:
        raise ImproperlyConfigured(
            f"Unknown LEASEQUEUE setting: {', '.join(unknown)}. Known: {', '.join(sorted(known))}."
        )
    values = dict(given)
    if "BACKOFF" in values:
        values["BACKOFF"] = _backoff(values["BACKOFF"])
    for name in ("MIDDLEWARE", "SIGNING_KEYS"):
        if isinstance(values.get(name), list):
            values[name] = tuple(values[name])
    return Conf(**values)


def _forget(*, setting: str, **kwargs: Any) -> None:
    if setting in ("LEASEQUEUE", "DATABASES"):
        get_conf.cache_clear()


setting_changed.connect(_forget, dispatch_uid="leasequeue_conf")
