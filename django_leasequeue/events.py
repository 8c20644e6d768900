"""Log events: a word and its fields. How they are written is the project's logging set-up.

Events of level DEBUG mark the moments inside a worker that nobody waits for but a test or a
debugging session: production runs at INFO, where they cost one comparison. Fields never hold
payloads, results or other values of a job.
"""

from __future__ import annotations

import logging
from typing import Any

__all__ = ["log_event"]

_logger = logging.getLogger("django_leasequeue")


def log_event(
    event: str, *, level: int = logging.INFO, exc_info: Any = None, **fields: Any
) -> None:
    """Log `event` on the logger `django_leasequeue`; the record has `event` and `fields`."""
    if not _logger.isEnabledFor(level):
        return
    known = {name: value for name, value in fields.items() if value is not None}
    _logger.log(level, event, extra={"event": event, "fields": known}, exc_info=exc_info)
