"""Progress: from any thread of a handler to the job's row, the newest value only.

The handler leaves it on its hold. In a child the reader sends it to control, whose renewer writes
what has changed every two seconds; a solo worker's renewer finds it on the very hold.
"""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper

from django_leasequeue.codec import clean_text
from django_leasequeue.core.progress import save_progress
from django_leasequeue.events import log_event
from django_leasequeue.exceptions import JobError
from django_leasequeue.runtime.holds import Hold, Told
from django_leasequeue.runtime.notices import Notice

__all__ = ["ProgressBoard", "checked_progress"]

TEXT_LENGTH = 200
_EVERY = 2.0
_MOST = 100


def checked_progress(fraction: Any, text: Any) -> Told:
    """Return what a handler told; raises JobError for what is no progress."""
    if fraction is not None:
        number = isinstance(fraction, int | float) and not isinstance(fraction, bool)
        if not number or not 0 <= fraction <= 1:  # NaN as well
            raise JobError("progress: the fraction is a number from 0 to 1, or None")
    if not isinstance(text, str) or clean_text(text, TEXT_LENGTH) != text:
        raise JobError(
            f"progress: the text has up to {TEXT_LENGTH} characters that every database can store"
        )
    return Told(None if fraction is None else math.fabs(fraction), text)


class ProgressBoard:
    """Writes what the holds' handlers have told; called from the renewer's thread."""

    def __init__(self, holds: Callable[[], Sequence[Hold]]) -> None:
        self._holds = holds
        self._notice = Notice(_EVERY, _refused)

    def show(self, connection: BaseDatabaseWrapper) -> None:
        """Write what has changed if it is time. Raises what means that the database is away."""
        if not self._notice.due:
            return
        news = [(hold, hold.told) for hold in self._holds() if hold.told is not hold.shown]
        for start in range(0, len(news), _MOST):
            part = news[start : start + _MOST]
            self._notice.write(connection, partial(_save, connection, part))


def _save(connection: BaseDatabaseWrapper, news: Sequence[tuple[Hold, Told | None]]) -> None:
    written = save_progress(connection, {hold.lease: _as_json(told) for hold, told in news})
    for hold, told in news:
        if hold.lease in written:
            hold.shown = told


def _as_json(told: Told | None) -> str:
    return json.dumps(told._asdict() if told else None, ensure_ascii=False)


def _refused(error: str) -> None:
    log_event("progress_refused", level=logging.WARNING, error=error)
