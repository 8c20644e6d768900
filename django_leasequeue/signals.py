"""Django signals of the queue. A receiver that raises changes nothing: it is logged."""

from __future__ import annotations

from django.dispatch import Signal

__all__ = ["jobs_claimed"]

#: Sent by a worker right after a claim is committed and before its first stop check.
#: Arguments: `worker` (the worker's name, str), `jobs` (list of the claimed jobs, read-only).
jobs_claimed = Signal()
