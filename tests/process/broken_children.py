"""Settings that break in every process but the first: in the forkserver and the children.

Or, with PROCESS_TEST_BREAK: "soon" ends a child soon after its start, "receiver" ends it before
the handler of its first job.
"""

from __future__ import annotations

import os
import threading
from typing import Any

from tests.process.settings import *  # noqa: F403

_first = os.environ.setdefault("PROCESS_TEST_FIRST", str(os.getpid()))
_how = os.environ.get("PROCESS_TEST_BREAK", "")


def _end(**kwargs: Any) -> None:
    os._exit(7)


def _end_soon() -> None:
    threading.Timer(0.1, _end).start()


if _first != str(os.getpid()):
    if _how == "soon":
        os.register_at_fork(after_in_child=_end_soon)
    elif _how == "receiver":
        from django_leasequeue.signals import jobs_claimed

        jobs_claimed.connect(_end)
    else:
        raise RuntimeError("these settings break in children")
