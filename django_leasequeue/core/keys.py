"""Keys of live jobs: giving one back must not wait for an enqueuer who met it.

On InnoDB a producer that found a key taken may hold the key's index entry until it commits. Control
never waits for a row lock, so a job whose entry is held is left for later, its lease kept alive.
"""

from __future__ import annotations

from collections.abc import Mapping

from django.db.backends.utils import CursorWrapper

from django_leasequeue.core.dialect import Dialect
from django_leasequeue.core.transaction import marks, tagged

__all__ = ["held_keys"]


def held_keys(
    dialect: Dialect, cursor: CursorWrapper, live_keys: Mapping[int, str | None]
) -> set[int]:
    """Return the ids among `live_keys` (job id to live_key) whose key cannot be given back now.

    The other keys' entries are locked afterwards, without a wait, until the transaction ends.
    """
    keyed = {job_id: key for job_id, key in live_keys.items() if key is not None}
    if dialect.on_conflict or not keyed:
        return set()
    keys = sorted(set(keyed.values()))
    cursor.execute(
        tagged(
            "keys",
            f"SELECT id FROM leasequeue_job{dialect.hint('leasequeue_job_live')} "
            f"WHERE live_key IN ({marks(keys)}){dialect.skip_locked}",
        ),
        keys,
    )
    return set(keyed) - {row[0] for row in cursor.fetchall()}
