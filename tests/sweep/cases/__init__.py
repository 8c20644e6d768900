"""The operations of a job's life: each prepares its jobs and returns what is to be broken."""

from __future__ import annotations

from tests.sweep.cases import burying, enqueueing, handling, operating, scheduling, working
from tests.sweep.rounds import Case

#: On the connection of a worker, of whoever enqueues, or of an operator.
PLAIN: list[Case] = [
    *enqueueing.CASES,
    *working.CASES,
    *burying.CASES,
    *scheduling.CASES,
    *operating.CASES,
]
#: On whatever connections a handler's thread opens.
HANDLERS: list[Case] = handling.CASES
EVERY: list[Case] = [*PLAIN, *HANDLERS]
