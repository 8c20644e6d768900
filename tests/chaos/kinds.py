"""The kinds of jobs in a storm: how many of each, in which queues, and how each may end."""

from __future__ import annotations

QUEUES = ("storm-a", "storm-b", "storm-c")
#: Of a hundred jobs.
SHARES = {
    "storm.plain": 18,
    "storm.atomic": 15,
    "storm.completing": 20,
    "storm.charging": 12,
    "storm.coroutine": 10,
    "storm.failing": 8,
    "storm.snoozing": 6,
    "storm.slow": 4,
    "storm.crashing": 3,
    "storm.cancelling": 2,
    "storm.hopeless": 1,
    "storm.poison": 1,
}
#: Done at the end, unless an operator has cancelled it, and then with one fenced effect.
FENCED = (
    "storm.atomic",
    "storm.completing",
    "storm.charging",
    "storm.coroutine",
    "storm.failing",
    "storm.snoozing",
    "storm.slow",
    "storm.crashing",
    "storm.tick",
)
#: How each type may end.
ENDS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("storm.plain", *FENCED), ("done", "cancelled")),
    **dict.fromkeys(("storm.hopeless", "storm.poison"), ("dead", "cancelled")),
    "storm.cancelling": ("cancelled",),
}
