"""Worker profiles: `LEASEQUEUE["WORKERS"]` as options of workers, and what a command adds to them.

The settings come from a file that a human wrote: what is wrong is said with the profile's name.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from typing import Any

from django.core.exceptions import ImproperlyConfigured

from django_leasequeue.conf import get_conf
from django_leasequeue.runtime.options import WorkerOptions

__all__ = ["profile_options", "workers_options"]

#: What an annotation of WorkerOptions means for a value in a settings file.
_TYPES: dict[str, tuple[type, ...]] = {
    "bool": (bool,),
    "int": (int,),
    "float": (int, float),
    "str": (str,),
    "int | None": (int, type(None)),
    "float | None": (int, float, type(None)),
    "str | Iterable[str]": (str, list, tuple),
}
#: The command's own, or no value that a settings file could hold.
_NOT_IN_PROFILES = {"source", "log_format"}


def _known() -> dict[str, tuple[type, ...]]:
    """Return the keys of a profile with the types that each may have."""
    return {
        item.name: _TYPES[str(item.type)]
        for item in fields(WorkerOptions)
        if item.name not in _NOT_IN_PROFILES
    }


def profile_options(name: str) -> dict[str, Any]:
    """Return a profile's options, as keyword arguments of a Worker, named after it if unnamed.

    Raises ImproperlyConfigured, naming the profile and what is known instead, for a profile that
    is not there, keys that are none and values of another type.
    """
    profiles = get_conf().WORKERS
    if name not in profiles:
        there = ", ".join(sorted(profiles)) or "none, LEASEQUEUE['WORKERS'] is empty"
        raise ImproperlyConfigured(f"There is no worker profile {name!r}. Known: {there}.")
    options = dict(profiles[name])
    _check(f"LEASEQUEUE['WORKERS'][{name!r}]", options)
    return {"name": name, **options}


def _check(where: str, options: Mapping[Any, Any]) -> None:
    known = _known()
    unknown = sorted(repr(key) for key in options if key not in known)
    if unknown:
        raise ImproperlyConfigured(
            f"{where}: unknown option {', '.join(unknown)}. Known: {', '.join(sorted(known))}."
        )
    for key, value in options.items():
        if not _is_a(value, known[key]):
            names = " or ".join(_word(item) for item in known[key])
            raise ImproperlyConfigured(f"{where}: {key!r} must be {names}, not {value!r}.")


def _is_a(value: Any, types: tuple[type, ...]) -> bool:
    if isinstance(value, bool):  # which Python takes for a number
        return bool in types
    if isinstance(value, list | tuple):
        return list in types and all(isinstance(item, str) for item in value)
    return isinstance(value, types)


def _word(item: type) -> str:
    words = {type(None): "None", list: "a list of str", tuple: "a tuple of str"}
    return words.get(item, item.__name__)


def workers_options(names: Iterable[str], given: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the options of the workers that a command is to run, one for each profile.

    `given` are the command's own, which win over the profiles'; without profiles they are those of
    the one worker. Raises ImproperlyConfigured, before any worker is made, for profiles that are
    wrong or do not go together and for options that no worker could run with.
    """
    _check("runworker", given)  # call_command converts no texts
    profiles = list(names)
    if len(set(profiles)) < len(profiles):
        raise ImproperlyConfigured(
            "--profile: each profile once. Give it more processes, or start the command twice."
        )
    if not profiles:
        WorkerOptions(**given)
        return [dict(given)]
    merged = [{**profile_options(name), **given} for name in profiles]
    for name, options in zip(profiles, merged, strict=True):
        _check_values(name, options)
    _check_together(merged)
    return merged


def _check_values(name: str, options: Mapping[str, Any]) -> None:
    try:
        WorkerOptions(**options)
    except ImproperlyConfigured as error:
        raise ImproperlyConfigured(f"Worker profile {name!r}: {error}") from None


def _check_together(merged: Sequence[Mapping[str, Any]]) -> None:
    if len(merged) > 1 and any(options.get("solo") for options in merged):
        raise ImproperlyConfigured(
            "A solo worker runs its handlers in the one main thread: start each solo profile with "
            "a command of its own."
        )
