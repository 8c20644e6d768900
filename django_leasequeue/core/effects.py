"""Named effects: a row that says, once per job, that an effect was committed.

It is inserted by the transaction that commits the effect, under the lock that this transaction has
on the job's row: so it is there together with the effect's rows, or not at all.
"""

from __future__ import annotations

from django.db import IntegrityError
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.utils import CursorWrapper

from django_leasequeue.core.attempts import await_free
from django_leasequeue.core.dialect import dialect_for
from django_leasequeue.core.transaction import ask, tagged

__all__ = ["claim_effect", "effect_stands"]


def claim_effect(
    connection: BaseDatabaseWrapper, cursor: CursorWrapper, job_id: int, name: str, number: int
) -> bool:
    """Insert the effect's row for run `number` of a job; return False when it is there already.

    The caller has locked the job's row in this transaction, and commits. True the first time in
    the job's life: retries and requeues change nothing.
    """
    dialect = dialect_for(connection)
    insert = "INSERT INTO leasequeue_jobeffect (job_id, name, number) VALUES (%s, %s, %s)"
    params: list[int | str] = [job_id, name, number]
    if dialect.on_conflict:
        sql = f"{insert} ON CONFLICT DO NOTHING RETURNING id"
        cursor.execute(tagged("effect", sql), params)
        return cursor.fetchone() is not None
    try:
        cursor.execute(tagged("effect", insert), params)
    except IntegrityError as error:
        if not dialect.is_duplicate(error):
            raise
        return False
    return True


def effect_stands(connection: BaseDatabaseWrapper, job_id: int, name: str, number: int) -> bool:
    """Tell whether a COMMIT of run `number` was applied whose answer was lost.

    Raises the database's error when it cannot be reached.
    """
    await_free(connection, job_id)
    rows = ask(
        connection,
        tagged(
            "effect",
            "SELECT number FROM leasequeue_jobeffect"
            f"{dialect_for(connection).hint('leasequeue_effect_name')} "
            "WHERE job_id = %s AND name = %s",
        ),
        [job_id, name],
    )
    return bool(rows) and rows[0][0] == number
