"""What the storm's jobs did, a row for each time: no key keeps a second one out."""

from __future__ import annotations

from django.db import connection

_TABLE = (
    "CREATE TABLE chaos_effect (job_id BIGINT NOT NULL, name VARCHAR(16) NOT NULL, "
    "claim INTEGER NOT NULL, fenced INTEGER NOT NULL)"
)


def create() -> None:
    """Make the table, and an index that is not unique."""
    with connection.cursor() as cursor:
        cursor.execute(_TABLE)
        cursor.execute("CREATE INDEX chaos_effect_job ON chaos_effect (job_id, name)")


def drop() -> None:
    """Drop the table."""
    with connection.cursor() as cursor:
        cursor.execute("DROP TABLE chaos_effect")


def write(job_id: int, claim: int, name: str = "done", *, fenced: bool) -> None:
    """Note that a job did something, in the caller's transaction if there is one."""
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO chaos_effect (job_id, name, claim, fenced) VALUES (%s, %s, %s, %s)",
            [job_id, name, claim, int(fenced)],
        )
