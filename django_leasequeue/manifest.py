"""Job types declared as data: the setting JOBS, with the keys of a module.json of seed S2.

A dictionary with `jobs`, a list of entries, or the path of a JSON file with either. What is wrong
is said with the setting or the file, and the entry.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from django.core.exceptions import ImproperlyConfigured
from django.utils.module_loading import import_string

from django_leasequeue.declaration import Declaration, names_context, policy_for
from django_leasequeue.registry import Registry
from django_leasequeue.retry import Backoff, Exponential, Fixed, Linear

__all__ = ["declare_jobs", "parse_jobs"]

_TIMES = ("every", "cron", "timezone", "catch_up")
_KEYS = {"name", "handler", "queue", "retry", "timeout", *_TIMES}
_RETRY_KEYS = {"max", "strategy", "base", "delay", "jitter"}
_INHERITED = ("retry", "timeout")
_MAX_ATTEMPTS = 3
# A schedule belongs to the name that it is declared with: under another one it would tick twice.
_POLICY = [
    item.name for item in fields(Declaration) if item.name not in ("handler", "name", *_TIMES)
]


def declare_jobs(jobs: Any, registry: Registry) -> None:
    """Import the handlers of a manifest and register its job types, all of them or up to an error.

    Raises ImproperlyConfigured, naming the entry, for what cannot be read or can never run, and
    for a name that is declared already.
    """
    for declaration, source in parse_jobs(jobs):
        registry.add(declaration, source)


def parse_jobs(jobs: Any) -> list[tuple[Declaration, str]]:
    """Return the job types of a manifest, each with where it is declared. Registers nothing.

    Raises ImproperlyConfigured as `declare_jobs` does.
    """
    where = "LEASEQUEUE['JOBS']"
    if isinstance(jobs, str | Path):
        where, jobs = str(jobs), _read(jobs)
    entries, defaults = _entries(where, jobs)
    parsed = []
    for number, entry in enumerate(entries):
        place = f"{where}, entry {number}"
        parsed.append(_declaration(place, defaults, _as_object(place, entry)))
    return parsed


def _read(path: str | Path) -> Any:
    try:
        return json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise ImproperlyConfigured(
            f"LEASEQUEUE['JOBS']: {path} cannot be read as JSON: {error}."
        ) from error


def _entries(where: str, jobs: Any) -> tuple[list[Any], dict[str, Any]]:
    """Return the entries, and what the top level says for those that declare nothing."""
    whole = jobs if isinstance(jobs, Mapping) else {"jobs": jobs}
    entries = whole.get("jobs", [])
    if not isinstance(entries, list | tuple):
        raise ImproperlyConfigured(
            f"{where}: give a list of entries, an object with a list under 'jobs', or the path of "
            "a JSON file with either."
        )
    if whole.get("type", "job") != "job":  # in other modules they belong to something else
        return list(entries), {}
    return list(entries), {key: whole[key] for key in _INHERITED if whole.get(key) is not None}


def _as_object(place: str, entry: Any) -> dict[str, Any]:
    """Return an entry whole; a text is a name that is its own handler."""
    if isinstance(entry, str):
        entry = {"name": entry}
    if not isinstance(entry, Mapping):
        raise ImproperlyConfigured(f"{place} is neither a name nor an object.")
    if not isinstance(entry.get("name"), str) or not entry["name"]:
        raise ImproperlyConfigured(f"{place} has no name.")
    return {key: value for key, value in entry.items() if value is not None}


def _declaration(
    place: str, defaults: Mapping[str, Any], entry: Mapping[str, Any]
) -> tuple[Declaration, str]:
    place = f"{place} ({entry['name']})"
    _refuse_unknown(place, entry, _KEYS)
    entry = {**defaults, **entry}
    handler, policy = _handler(place, entry.get("handler", entry["name"]))
    said: dict[str, Any] = {
        key: entry[key] for key in ("queue", "timeout", *_TIMES) if key in entry
    }
    said |= _retry(place, entry.get("retry"))
    try:
        return Declaration(handler, entry["name"], **{**policy, **said}), place
    except TypeError as error:
        raise ImproperlyConfigured(f"{place}: {error}.") from None


def _handler(place: str, path: Any) -> tuple[Any, dict[str, Any]]:
    """Return the function or class at a dotted path, and what is declared there already."""
    if not isinstance(path, str):
        raise ImproperlyConfigured(f"{place}: handler must be a dotted path.")
    try:
        found = import_string(path)
    except Exception as error:
        raise ImproperlyConfigured(
            f"{place}: its handler {path} cannot be imported: {type(error).__name__}: {error}."
        ) from error
    if isinstance(found, Declaration):  # it has @job, and a name of its own besides
        return found.handler, {name: getattr(found, name) for name in _POLICY}
    if not callable(found):
        raise ImproperlyConfigured(f"{place}: {path} is no function and no class.")
    return found, {"takes_context": names_context(found)} | policy_for(found, {})


def _retry(place: str, retry: Any) -> dict[str, Any]:
    """Return the options that `retry` stands for; none leaves them to the settings."""
    if retry is None:
        return {}
    if _is_number(retry):
        retry = {"max": retry}
    if not isinstance(retry, Mapping):
        raise ImproperlyConfigured(f"{place}: retry must be an object, or a number of attempts.")
    _refuse_unknown(f"{place}: retry", retry, _RETRY_KEYS)
    attempts = _number(place, "max", retry.get("max"), _MAX_ATTEMPTS)
    if attempts != int(attempts):
        raise ImproperlyConfigured(f"{place}: retry.max must be a whole number.")
    return {"max_attempts": max(1, int(attempts)), "backoff": _backoff(place, retry)}


def _backoff(place: str, retry: Mapping[str, Any]) -> Backoff:
    given = retry.get("base") if retry.get("base") is not None else retry.get("delay")
    base = max(1, _number(place, "base", given, 1))
    jitter = retry.get("jitter") or False
    if not isinstance(jitter, bool):
        raise ImproperlyConfigured(f"{place}: retry.jitter must be true or false.")
    if retry.get("strategy") == "linear":
        return Linear(base)
    if retry.get("strategy") == "fixed":
        return Fixed(base)
    return Exponential(base, jitter=jitter)  # whatever else is written, as S2 has it


def _number(place: str, key: str, value: Any, default: float) -> float:
    if value is None:
        return default
    if not _is_number(value):
        raise ImproperlyConfigured(f"{place}: retry.{key} must be a number.")
    number: float = value
    return number


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _refuse_unknown(place: str, given: Mapping[str, Any], known: set[str]) -> None:
    unknown = ", ".join(sorted(repr(key) for key in given if key not in known))
    if unknown:
        raise ImproperlyConfigured(
            f"{place}: unknown key {unknown}. Known: {', '.join(sorted(known))}."
        )
