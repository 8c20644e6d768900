"""Signing jobs that are in the table already: at the roll-out of signing, and of a new key."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.utils import CursorWrapper

from django_leasequeue.codec import decode_payload
from django_leasequeue.conf import get_conf
from django_leasequeue.core.dialect import Dialect, dialect_for
from django_leasequeue.core.transaction import CommitUnknown, ask, marks, run, tagged
from django_leasequeue.exceptions import LeaseQueueError, RejectedJob
from django_leasequeue.signing import Sealed, key_of, signature_of
from django_leasequeue.statuses import Status

__all__ = ["Resigned", "Selection", "resign"]

_BATCH = 200
_TRIES_FOR_LOCKED = 3
_UNFINISHED = (Status.READY, Status.RESERVED, Status.PARKED)
_COLUMNS = (
    "id",
    "job_type",
    "queue_name",
    "max_attempts",
    "idempotency_key",
    "payload_version",
    "payload",
    "context",
    "signature",
)


class Selection(NamedTuple):
    """Which jobs are looked at: of one queue, of one type, and finished ones as well.

    A finished job needs a signature when it is requeued.
    """

    queue: str | None = None
    job_type: str | None = None
    finished: bool = False


@dataclass(slots=True)
class Resigned:
    """How many jobs there were of each kind.

    `signed` had no signature, `renewed` had one by an older key, `forced` a wrong one: these were
    signed by the newest key. Left alone: `valid`, `wrong`, `malformed` (no handler could run with
    it) and `locked`, which somebody held: look again later.
    """

    signed: int = 0
    renewed: int = 0
    forced: int = 0
    valid: int = 0
    wrong: int = 0
    malformed: int = 0
    locked: int = 0


class _Row(NamedTuple):
    """A row as it is read here; `payload` and `context` are JSON text."""

    id: int
    job_type: str
    queue: str
    max_attempts: int
    idempotency_key: str
    payload_version: int
    payload: str
    context: str
    signature: str

    def __repr__(self) -> str:
        return f"<_Row {self.id}>"  # no values


def resign(
    selection: Selection,
    *,
    dry_run: bool = False,
    force: bool = False,
    using: str | None = None,
) -> Resigned:
    """Sign the selected jobs with the newest of SIGNING_KEYS and return what was met.

    In batches in the order of their ids, a transaction each. A wrong signature is replaced only
    with `force`: whatever was changed in such a job is trusted from then on, as is all that is in
    an unsigned one. `dry_run` writes nothing and counts the same. Raises LeaseQueueError when
    signing is off.
    """
    if not get_conf().SIGNING_KEYS:
        raise LeaseQueueError("Signing is off: set LEASEQUEUE['SIGNING_KEYS'] first")
    connection = connections[using or get_conf().DATABASE]
    counts: Counter[str] = Counter()
    after = 0
    while ids := _next_ids(connection, selection, after):
        after = ids[-1]
        for _ in range(_TRIES_FOR_LOCKED):
            met, kinds = _one_batch(connection, ids, dry_run=dry_run, force=force)
            counts += kinds
            ids = [job_id for job_id in ids if job_id not in met]
            if not ids:
                break
        counts["locked"] += len(ids)
    return Resigned(**counts)


def _next_ids(connection: BaseDatabaseWrapper, selection: Selection, after: int) -> list[int]:
    dialect = dialect_for(connection)
    conditions, params = ["id > %s"], [after]
    wanted: dict[str, list[Any]] = {
        "queue_name": [selection.queue] if selection.queue is not None else [],
        "job_type": [selection.job_type] if selection.job_type is not None else [],
        "status": [] if selection.finished else [status.value for status in _UNFINISHED],
    }
    for column, values in wanted.items():
        if values:
            conditions.append(f"{dialect.aside(column)} IN ({marks(values)})")
            params += values
    sql = (
        f"SELECT id FROM leasequeue_job{dialect.hint('PRIMARY')} "
        f"WHERE {' AND '.join(conditions)} ORDER BY id LIMIT {_BATCH}"
    )
    return [row[0] for row in ask(connection, tagged("sign", sql), params)]


def _one_batch(
    connection: BaseDatabaseWrapper, ids: Sequence[int], *, dry_run: bool, force: bool
) -> tuple[set[int], Counter[str]]:
    """Sign what is to be signed of these jobs; return the ids that were met, and their kinds."""
    dialect = dialect_for(connection)
    lock = "" if dry_run else dialect.skip_locked

    def work(cursor: CursorWrapper) -> tuple[set[int], Counter[str]]:
        cursor.execute(
            tagged(
                "sign",
                f"SELECT {', '.join(_COLUMNS)} FROM leasequeue_job{dialect.hint('PRIMARY')} "
                f"WHERE id IN ({marks(ids)}) ORDER BY id{lock}",
            ),
            list(ids),
        )
        rows = [_Row(*row) for row in cursor.fetchall()]
        kinds: Counter[str] = Counter()
        for row in rows:
            kind, signature = _judge(row, force=force)
            kinds[kind] += 1
            if signature and not dry_run:
                _write(dialect, cursor, row, signature)
        return {row.id for row in rows}, kinds

    try:
        return run(connection, work)
    except CommitUnknown:
        return run(connection, work)  # what was committed is met as valid


def _judge(row: _Row, *, force: bool) -> tuple[str, str]:
    """Return of which kind a job is, and its new signature, "" when it keeps what it has."""
    try:
        sealed = Sealed(
            *row[1:6],
            payload=decode_payload(row.payload),
            context=decode_payload(row.context, "context"),
        )
        new = signature_of(sealed)
    except (RejectedJob, RecursionError):
        return "malformed", ""
    if not row.signature:
        return "signed", new
    number = key_of(sealed, row.signature)
    if number is None:
        return ("forced", new) if force else ("wrong", "")
    return ("renewed", new) if number else ("valid", "")


def _write(dialect: Dialect, cursor: CursorWrapper, row: _Row, signature: str) -> None:
    cursor.execute(
        tagged(
            "sign",
            f"UPDATE leasequeue_job{dialect.hint('PRIMARY')} SET signature = %s "
            "WHERE id = %s AND signature = %s",
        ),
        [signature, row.id, row.signature],
    )
