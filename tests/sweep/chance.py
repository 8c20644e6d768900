"""What of the sweep runs: all of it, or a sample that a printed number brings back."""

from __future__ import annotations

import os
import random

#: `make sweep` asks for all of it; else every statement is broken, with an error drawn by lot.
WHOLE = os.environ.get("LEASEQUEUE_SWEEP") == "whole"
SEED = os.environ.get("LEASEQUEUE_SWEEP_SEED") or str(random.randrange(10**6))
AGAIN = f"repeat this sample with LEASEQUEUE_SWEEP_SEED={SEED}"


def lots(name: str) -> random.Random:
    """Return the random numbers of one test: the same ones for the same seed, run alone or not."""
    return random.Random(f"{SEED} {name}")
