"""Moving the queue's clock, through the one seam that every statement's "now" comes from."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from django.db.backends.base.base import BaseDatabaseWrapper

from django_leasequeue.core.dialect import Dialect, dialect_for

_SHIFTED = {
    "mysql": "({sql} + INTERVAL {micros} MICROSECOND)",
    "postgresql": "({sql} + {micros} * interval '1 microsecond')",
}


@contextmanager
def moved(connection: BaseDatabaseWrapper, seconds: float) -> Iterator[None]:
    """Let the queue's time in this process be `seconds` later (or earlier) than the server's.

    Column defaults stay with the server's own clock.
    """
    dialect = dialect_for(connection)
    kind = type(dialect)
    with pytest.MonkeyPatch.context() as patch:
        if connection.vendor == "sqlite":
            _move_sqlite(patch, kind, seconds)
        else:
            form, micros = _SHIFTED[connection.vendor], round(seconds * 1_000_000)
            for name in ("now", "stamp", "later"):
                shifted = form.format(sql=getattr(dialect, name), micros=micros)
                patch.setattr(kind, name, shifted, raising=True)
        yield


def _move_sqlite(patch: pytest.MonkeyPatch, kind: type[Dialect], seconds: float) -> None:
    for name in ("now", "stamp", "later"):
        original: str = getattr(kind, name)
        patch.setattr(kind, name, original.replace("'now'", f"'now', '{seconds:+.6f} seconds'"))
