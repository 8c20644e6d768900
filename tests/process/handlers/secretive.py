"""A handler that keeps a secret in every place that it is given, and ends in every way."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any

from django.db import connection

from django_leasequeue import Fixed, JobContext, JobError, JobResult, Retry, Snooze, job
from reports.models import GeneratedReport


class Permanent(Exception):
    """An error that no retry mends."""


class Unspeakable(Exception):
    """An error that cannot be described."""

    def __str__(self) -> str:
        raise ValueError(*self.args)


def _fails(context: JobContext, secret: str) -> None:
    raise ExceptionGroup(secret, [ValueError(secret)]) from KeyError(secret)


def _duplicates(context: JobContext, secret: str) -> None:
    for _ in range(2):
        GeneratedReport.objects.create(
            idempotency_key=secret, tenant_id=secret, report_month="2042-01", result_json={}
        )


def _speaks_sql(context: JobContext, secret: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT '{secret}' FROM no_such_table")


def _unspeakable(context: JobContext, secret: str) -> None:
    raise Unspeakable(secret)


def _permanent(context: JobContext, secret: str) -> None:
    raise Permanent(secret)


def _sleeps(context: JobContext, secret: str) -> None:
    time.sleep(60)


def _exits(context: JobContext, secret: str) -> None:
    os._exit(3)


def _leaves(context: JobContext, secret: str) -> None:
    raise SystemExit(secret)


def _retries(context: JobContext, secret: str) -> None:
    raise Retry(0)


def _snoozes(context: JobContext, secret: str) -> None:
    with context.effect("snooze") as first:
        pass
    if first:
        raise Snooze(0)


def _completes(context: JobContext, secret: str) -> None:
    with context.complete({"secret": secret}):
        pass
    raise ValueError(secret)


def _returns(context: JobContext, secret: str) -> JobResult:
    return JobResult.success({"secret": secret})


def _returns_what_cannot_be_stored(context: JobContext, secret: str) -> Any:
    return {"secret": {secret}}


WAYS: dict[str, Callable[[JobContext, str], Any]] = {
    "fails": _fails,
    "duplicates": _duplicates,
    "speaks sql": _speaks_sql,
    "unspeakable": _unspeakable,
    "permanent": _permanent,
    "sleeps": _sleeps,
    "exits": _exits,
    "leaves": _leaves,
    "retries": _retries,
    "snoozes": _snoozes,
    "completes": _completes,
    "returns": _returns,
    "unstorable": _returns_what_cannot_be_stored,
}


def _hook(context: JobContext, error: JobError) -> None:
    raise ValueError(context.payload["secret"])


@job(
    "proc.secretive",
    takes_context=True,
    backoff=Fixed(0),
    max_attempts=2,
    permanent=(Permanent,),
    failed=_hook,
)
def secretive(context: JobContext, way: str, secret: str) -> Any:
    context.progress(0.5, secret)
    context.checkpoint({"secret": secret})
    with context.effect("once"):
        pass
    return WAYS[way](context, secret)
