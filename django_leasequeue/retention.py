"""Retention: how long what is finished stays in the tables, as the settings say."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from django.core.exceptions import ImproperlyConfigured

from django_leasequeue.statuses import Status

__all__ = ["PRUNABLE", "Retention", "age_in_seconds", "retention_of"]

#: What may ever be pruned. The others are live: no age takes them.
PRUNABLE = (Status.DONE, Status.CANCELLED, Status.DEAD)
#: Rows beside the jobs, and how long they stay unless the settings say otherwise.
BESIDE = {"workers": 7 * 86_400.0, "bulk_runs": 90 * 86_400.0}
_LONGEST = 100 * 365 * 86_400.0

Ages = Mapping[str, float | None]


@dataclass(frozen=True, slots=True)
class Retention:
    """Ages in seconds; None keeps for good."""

    jobs: Ages = field(default_factory=dict)
    types: Mapping[str, Ages] = field(default_factory=dict)
    workers: float | None = BESIDE["workers"]
    bulk_runs: float | None = BESIDE["bulk_runs"]

    def types_with_ages(self, status: Status) -> dict[str, float | None]:
        """Return the types whose own word counts for this status, with it."""
        return {
            job_type: ages[status.value]
            for job_type, ages in self.types.items()
            if status.value in ages
        }

    def names(self, status: Status) -> bool:
        """Tell whether anything says how long jobs of this status stay."""
        ages = [self.jobs, *self.types.values()]
        return any(one.get(status.value) is not None for one in ages)


def age_in_seconds(value: Any) -> float:
    """Return an age, seconds or a timedelta, in seconds; raise ValueError for anything else."""
    if isinstance(value, timedelta):
        value = value.total_seconds()
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"an age is a number of seconds or a timedelta, not {value!r}")
    if not 0 <= value <= _LONGEST:
        raise ValueError(f"an age is between 0 seconds and 100 years, not {value!r}")
    return float(value)


def retention_of(setting: Any) -> Retention:
    """Return LEASEQUEUE["RETENTION"] as ages; raise ImproperlyConfigured naming what is wrong."""
    given = dict(_mapping("", setting))
    types = _mapping("['types']", given.pop("types", {}))
    beside = {name: given.pop(name) for name in BESIDE if name in given}
    return Retention(
        jobs=_ages("", given),
        types={str(name): _ages(f"['types'][{name!r}]", own) for name, own in types.items()},
        **{name: _age(f"[{name!r}]", value) for name, value in beside.items()},
    )


def _ages(where: str, given: Any) -> dict[str, float | None]:
    names = [status.value for status in PRUNABLE]
    for name in _mapping(where, given):
        if name not in names:
            known = names if where else [*names, *BESIDE, "types"]
            raise ImproperlyConfigured(
                f"LEASEQUEUE['RETENTION']{where}: {name!r} is none of {', '.join(known)}. "
                "Jobs that are ready, reserved or parked are never pruned."
            )
    return {name: _age(f"{where}[{name!r}]", value) for name, value in given.items()}


def _age(where: str, value: Any) -> float | None:
    try:
        return None if value is None else age_in_seconds(value)
    except ValueError as error:
        raise ImproperlyConfigured(f"LEASEQUEUE['RETENTION']{where}: {error}.") from None


def _mapping(where: str, value: Any) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise ImproperlyConfigured(f"LEASEQUEUE['RETENTION']{where} must be a dictionary.")
    return value
