"""Settings of processes under libfaketime, with a sleep that works there.

Python sleeps until an absolute moment of the monotonic clock, which libfaketime 0.9.10 refuses
with EINVAL when it leaves that clock alone; and faking it makes every timed wait hang.
"""

from __future__ import annotations

import select
import time
from typing import SupportsIndex

from tests.process.settings import *  # noqa: F403


def _sleep(seconds: float | SupportsIndex) -> None:
    select.select([], [], [], float(seconds))


time.sleep = _sleep
