"""The instruments: everything that goes wrong, made to go wrong on purpose."""

from __future__ import annotations

from tests.faults.clock import moved
from tests.faults.errors import RECONNECT, REPEAT, codes_for, make_error, severs
from tests.faults.moments import Moments, watching
from tests.faults.rivals import Rival, holding, holding_job, session_id, wait_blocked
from tests.faults.statements import Fault, broken, broken_everywhere

__all__ = [
    "RECONNECT",
    "REPEAT",
    "Fault",
    "Moments",
    "Rival",
    "broken",
    "broken_everywhere",
    "codes_for",
    "holding",
    "holding_job",
    "make_error",
    "moved",
    "session_id",
    "severs",
    "wait_blocked",
    "watching",
]
