"""Processes that do not outlive the one that started them, even when that is killed."""

from __future__ import annotations

import shutil
import signal
from collections.abc import Sequence


def tied(command: Sequence[str], sign: signal.Signals = signal.SIGKILL) -> list[str]:
    """Return a command that gets `sign` from the kernel when the calling thread's process dies.

    Where setpriv is missing (it comes with Linux) the command stays as it is.
    """
    setpriv = shutil.which("setpriv")
    prefix = [setpriv, "--pdeathsig", sign.name[len("SIG") :]] if setpriv else []
    return [*prefix, *command]
