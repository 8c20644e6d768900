"""Failures on request, for exercises and tests: off unless the environment switches them on."""

from __future__ import annotations

import os
import time
from typing import Any

PAUSE_SECONDS = 30
MAX_POST_CLAIM_PAUSE_MS = 10_000


def apply_fixtures(attempt: int, payload: dict[str, Any]) -> None:
    """Do what the payload's `test_*` values ask for, if WORKER_ENABLE_TEST_FIXTURES is 1.

    `test_pause`: wait 30 seconds. `test_transient_until_attempt`: raise RuntimeError while
    `attempt` is not above that number. Otherwise, and without the variable, do nothing.
    """
    if os.environ.get("WORKER_ENABLE_TEST_FIXTURES") != "1":
        return
    if payload.get("test_pause"):
        _pause()
    until = payload.get("test_transient_until_attempt", 0)
    if isinstance(until, int) and attempt <= until:
        raise RuntimeError("Synthetic transient test failure")


def _pause() -> None:
    until = time.monotonic() + PAUSE_SECONDS
    while time.monotonic() < until:
        time.sleep(min(1, max(0, until - time.monotonic())))


def pause_after_claim(**kwargs: Any) -> None:
    """Receiver of `jobs_claimed`: wait WORKER_TEST_POST_CLAIM_PAUSE_MS, if it is 1 to 10 000.

    It stands between the claim's commit and the worker's look at its stop flag, so that a test
    can send a signal into just that gap.
    """
    text = os.environ.get("WORKER_TEST_POST_CLAIM_PAUSE_MS", "")
    pause = int(text) if text.isascii() and text.isdigit() else 0
    if 0 < pause <= MAX_POST_CLAIM_PAUSE_MS:
        time.sleep(pause / 1000)
