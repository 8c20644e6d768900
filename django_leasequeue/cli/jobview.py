"""One job as the command line shows it: a row of a list, a page, a JSON object."""

from __future__ import annotations

import json
import math
from datetime import datetime
from typing import Any

from django.db import DataError
from django.db.models import TextField
from django.db.models.functions import Cast

from django_leasequeue.cli.output import Output, moment
from django_leasequeue.cli.states import state_of
from django_leasequeue.codec import MASK, masked
from django_leasequeue.models import Job, JobAttempt
from django_leasequeue.querysets import JobQuerySet
from django_leasequeue.registry import registry

__all__ = ["LISTED", "Shown", "attempts_of", "load", "print_job"]

_SHORT = 80
_MOST_ATTEMPTS = 100
LISTED = (
    "id",
    "job_type",
    "queue_name",
    "status",
    "priority",
    "attempts",
    "max_attempts",
    "crashes",
    "max_crashes",
    "claims",
    "created_at",
    "available_at",
    "expires_at",
    "claimed_at",
    "lease_until",
    "finished_at",
    "leased_by",
    "idempotency_key",
    "schedule",
    "last_error",
)
_ATTEMPT = ("number", "outcome", "worker", "started_at", "finished_at", "error_class", "error_text")


def load(jobs: JobQuerySet, limit: int, *, payload: bool) -> list[Job]:
    """Return up to `limit` jobs with what is shown; a payload as the text of `payload_text`."""
    rows = jobs.only(*LISTED)
    if payload:
        # As text: plain SQL may have put in what Python cannot decode.
        rows = rows.annotate(payload_text=Cast("payload", TextField()))
    try:
        return list(rows[:limit])
    except (DataError, ValueError):  # plain SQL put in a time beyond Python's, "infinity" for one
        ids = list(jobs.values_list("pk", flat=True)[:limit])
        return [job for job_id in ids if (job := _one(rows, job_id))]


def _one(rows: JobQuerySet, job_id: int) -> Job | None:
    """Return a job, without its times where they cannot be read; None when it is gone."""
    row = rows.order_by("pk").filter(pk=job_id)
    try:
        return row.first()
    except (DataError, ValueError):
        times = [name for name in LISTED if name.endswith(("_at", "_until"))]
        names = [*LISTED, "payload_text"] if "payload_text" in row.query.annotations else LISTED
        for values in row.values(*(name for name in names if name not in times)):
            job = Job(id=job_id)
            vars(job).update({**values, **dict.fromkeys(times)})
            return job
        return None


class Shown:
    """A job as of `now`, the database's time."""

    def __init__(self, job: Job, now: datetime, *, payload: bool) -> None:
        self.job = job
        self.state = state_of(job, now)
        self._with_payload = payload

    def payload(self) -> Any:
        """Return the payload without its sensitive fields; its text where it is no JSON."""
        declared = registry.get(self.job.job_type)
        sensitive = declared.sensitive if declared else ()
        text: str = vars(self.job)["payload_text"]
        try:
            value = json.loads(text, parse_constant=str, parse_float=_finite)
            return masked(value, sensitive)
        except (ValueError, RecursionError):
            return MASK if sensitive else text

    def row(self) -> tuple[object, ...]:
        """Return the cells of a list."""
        job = self.job
        error = job.last_error.partition("\n")[0]
        short = error if len(error) <= _SHORT else error[: _SHORT - 1] + "…"
        used = f"{job.attempts}/{job.max_attempts}"
        cells = (job.pk, job.job_type, job.queue_name, self.state, used, moment(job.available_at))
        payload = (json.dumps(self.payload()),) if self._with_payload else ()
        return (*cells, short, *payload)

    def as_json(self) -> dict[str, Any]:
        """Return all columns that are shown, under their names in the schema, and the state."""
        found = {name: getattr(self.job, name) for name in LISTED}
        found["state"] = self.state
        if self._with_payload:
            found["payload"] = self.payload()
        return found


def _finite(digits: str) -> float | str:
    """Return a JSON number; its digits where a float has no such number."""
    number = float(digits)
    return number if math.isfinite(number) else digits


def attempts_of(alias: str, job_id: int) -> list[dict[str, Any]]:
    """Return the last attempts of a job, newest first."""
    rows = JobAttempt.objects.using(alias).filter(job_id=job_id).order_by("-number")
    return list(rows.values(*_ATTEMPT)[:_MOST_ATTEMPTS])


def print_job(out: Output, shown: Shown, history: list[dict[str, Any]]) -> None:
    """Write one job as lines `name: value`, and its attempts as a table."""
    for name, value in shown.as_json().items():
        if name == "payload":
            text = json.dumps(value, indent=2).splitlines()
            out.line("payload:")
            for line in text:
                out.line(f"  {line}")
        elif value not in (None, ""):
            out.line(f"{name}: {moment(value) if isinstance(value, datetime) else value}")
    if history:
        out.line("attempts:")
        out.table(_ATTEMPT, (_cells(attempt) for attempt in history))
    out.line()


def _cells(attempt: dict[str, Any]) -> tuple[object, ...]:
    values = (attempt[name] for name in _ATTEMPT)
    return tuple(moment(value) if isinstance(value, datetime) else value for value in values)
