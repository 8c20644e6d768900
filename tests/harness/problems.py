"""The two ways the harness talks: a line of progress, and an error that says what to do next."""

from __future__ import annotations


class Problem(Exception):
    """Something is missing on this machine; the text says what, and what to do about it."""


def say(message: str) -> None:
    """Print one line of progress at once, in order with what child processes print."""
    print(f"[harness] {message}", flush=True)
