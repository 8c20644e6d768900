"""What the tests read from the database, and the plain SQL that other languages would write."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any, cast

from django.db import connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper

from django_leasequeue.models import Job, JobAttempt

#: What seed S1's statements call their functions, database by database.
_JSON_OBJECT = {
    "mysql": "JSON_OBJECT",
    "postgresql": "jsonb_build_object",
    "sqlite": "json_object",
}
_RANDOM_KEY = {
    "mysql": "SHA2(CONCAT('fixture:', UUID()), 256)",
    "postgresql": (
        "encode(sha256(convert_to('fixture:' || gen_random_uuid()::text, 'UTF8')), 'hex')"
    ),
    "sqlite": "lower(hex(randomblob(32)))",
}


@contextmanager
def raw_cursor(connection: BaseDatabaseWrapper, **login: str) -> Iterator[Any]:
    """Yield a cursor of the bare driver, in autocommit, on a session of its own.

    `login` may name another `user` and `password` of the server.
    """
    params = {**connection.get_connection_params(), **login}
    driver: Any = cast("Any", connection).Database
    if connection.vendor == "sqlite":
        raw = driver.connect(params["database"], isolation_level=None, timeout=10)
    else:
        name = "dbname" if connection.vendor == "postgresql" else "database"
        given = ("host", "port", name, "user", "password")
        raw = driver.connect(autocommit=True, **{key: params[key] for key in given})
    with closing(raw), closing(raw.cursor()) as cursor:
        yield cursor


def insert_fixture(
    connection: BaseDatabaseWrapper, job_type: str, arguments: str, max_attempts: int
) -> int:
    """Enqueue as S1's exercise does, by plain SQL; `arguments` are those of JSON_OBJECT."""
    vendor = connection.vendor
    sql = (
        "INSERT INTO leasequeue_job "
        "(queue_name, job_type, payload, idempotency_key, max_attempts) VALUES "
        f"('reports', '{job_type}', {_JSON_OBJECT[vendor]}({arguments}), {_RANDOM_KEY[vendor]}, "
        f"{max_attempts})"
    )
    with raw_cursor(connection) as cursor:
        if vendor == "postgresql":
            (job_id,) = cursor.execute(f"{sql} RETURNING id").fetchone()
        else:
            cursor.execute(sql)
            job_id = cursor.lastrowid
    return int(job_id)


def job(job_id: int) -> Job:
    """Return the job as it is now."""
    return Job.objects.get(pk=job_id)


def outcomes(job_id: int) -> list[str]:
    """Return how the job's attempts ended, in order."""
    attempts = JobAttempt.objects.filter(job_id=job_id).order_by("number")
    return list(attempts.values_list("outcome", flat=True))


def is_locked(job_id: int) -> bool:
    """Tell whether another session holds the job's row (on SQLite: the whole file)."""
    connection = connections["default"]
    if connection.vendor == "sqlite":
        with closing(sqlite3.connect(connection.settings_dict["NAME"], timeout=0)) as raw:
            try:
                raw.execute("BEGIN IMMEDIATE")
            except sqlite3.OperationalError:
                return True
            return False
    free = Job.objects.select_for_update(skip_locked=True).filter(pk=job_id)
    with transaction.atomic():
        return not free.exists()
