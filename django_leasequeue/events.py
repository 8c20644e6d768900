"""Log events: a word and its fields. How they are written is the project's logging set-up.

Events of level DEBUG mark the moments inside a worker that nobody waits for but a test or a
debugging session: production runs at INFO, where they cost one comparison. Fields never hold
payloads, results or other values of a job.
"""

from __future__ import annotations

import logging
import traceback
from typing import Any

__all__ = ["frames_of", "log_event"]

_logger = logging.getLogger("django_leasequeue")


def log_event(
    event: str, *, level: int = logging.INFO, raised: BaseException | None = None, **fields: Any
) -> None:
    """Log `event` on the logger `django_leasequeue`; the record has `event` and `fields`.

    Of an error that was `raised` its frames are a field. The record has no `exc_info`: a project's
    formatter would print the message, in which a database quotes whole rows.
    """
    if not _logger.isEnabledFor(level):
        return
    known = {name: value for name, value in fields.items() if value is not None}
    if raised is not None:
        known["frames"] = frames_of(raised)
    # Not through `log()`, which would walk the stack for a caller that is always this function.
    extra = {"event": event, "fields": known}
    _logger.handle(
        _logger.makeRecord(_logger.name, level, __file__, 0, event, (), None, extra=extra)
    )


def frames_of(error: BaseException) -> list[str]:
    """Return class and frames of an error: no message, no values, no source."""
    stack = traceback.extract_tb(error.__traceback__)
    return [type(error).__qualname__, *(f"{f.filename}:{f.lineno} {f.name}" for f in stack)]
