"""What the tests of a project make happen to a lease: it ends, or somebody else has it."""

from __future__ import annotations

import secrets

from django.db.backends.base.base import BaseDatabaseWrapper

from django_leasequeue.core.dialect import dialect_for
from django_leasequeue.core.transaction import tagged

__all__ = ["end_lease", "take_lease"]


def end_lease(connection: BaseDatabaseWrapper, job_id: int) -> bool:
    """Let a running job's deadline have passed a second ago; False when it is not running."""
    dialect = dialect_for(connection)
    sql = (
        f"UPDATE leasequeue_job SET lease_until = {dialect.later} "
        "WHERE id = %s AND status = 'reserved'"
    )
    with connection.cursor() as cursor:
        cursor.execute(tagged("simulate", sql), [dialect.span(-1), job_id])
        return bool(cursor.rowcount)


def take_lease(connection: BaseDatabaseWrapper, job_id: int) -> bool:
    """Give a running job the token of nobody here; False when it is not running."""
    dialect = dialect_for(connection)
    sql = (
        f"UPDATE leasequeue_job SET lease_token = {dialect.token_mark}, claims = claims + 1 "
        "WHERE id = %s AND status = 'reserved'"
    )
    token = dialect.token_param(secrets.token_bytes(16))
    with connection.cursor() as cursor:
        cursor.execute(tagged("simulate", sql), [token, job_id])
        return bool(cursor.rowcount)
