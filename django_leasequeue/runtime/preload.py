"""Preload: the project, loaded once in the forkserver, from which each child is forked.

Imported there with the variable below in its environment; anywhere else importing does nothing.
A child that was not forked from a loaded project loads it itself.
"""

from __future__ import annotations

import gc
import json
import os
import signal
import socket
import sys
import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

__all__ = ["ChildPlan", "announced", "start_child", "without_main"]

_VARIABLE = "LEASEQUEUE_PRELOAD"


@dataclass(frozen=True, slots=True)
class ChildPlan:
    """What a child is told at its start; `names` are the databases' names by alias.

    With more resident memory than `max_bytes` it starts no further handler; 0 for no limit.
    """

    settings_module: str
    database: str
    threads: int
    log_format: str | None = None
    max_bytes: int = 0
    names: dict[str, str] = field(default_factory=dict)


def start_child(sock: socket.socket, plan: ChildPlan) -> None:
    """Be a child; never returns."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", plan.settings_module)
    load()
    from django_leasequeue.runtime.child import Child

    Child(sock, plan).run()


@contextmanager
def announced() -> Iterator[None]:
    """Let a forkserver that starts inside the block load the project, from this process's path."""
    os.environ[_VARIABLE] = json.dumps(sys.path)
    try:
        yield
    finally:
        os.environ.pop(_VARIABLE, None)


_main_lock = threading.Lock()


@contextmanager
def without_main() -> Iterator[None]:
    """Keep multiprocessing from running the main module again in each child that starts inside.

    Handlers live in the project's apps; a script that calls `call_command` would call it again.
    """
    main = sys.modules["__main__"]
    with _main_lock:
        hidden: dict[str, Any] = {
            name: vars(main).pop(name) for name in ("__file__", "__spec__") if name in vars(main)
        }
        main.__spec__ = None
        try:
            yield
        finally:
            vars(main).update(hidden)


def load() -> None:
    """Load the project, unless it is, and its drivers; no connection is open afterwards."""
    import django
    from django.apps import apps
    from django.db import connections

    if not apps.ready:
        django.setup()
    from django_leasequeue.core.dialect import load_driver

    for alias in connections:
        with suppress(Exception):  # one that cannot be had is for the handler to tell that asks it
            load_driver(connections[alias])
    connections.close_all()


def _preload(path: str) -> None:
    from django_leasequeue.runtime.orphans import kill_children_at_exit, lead_group

    # It outlives a control process that is killed with its group, to bury the children's groups.
    lead_group()
    # A terminal's Ctrl-C or a service manager's SIGTERM to the whole group is for control: without
    # the forkserver it could replace no child any more.
    for name in ("SIGTERM", "SIGHUP"):
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), signal.SIG_IGN)
    sys.path[:] = json.loads(path)
    kill_children_at_exit()
    try:
        load()
    except Exception:  # noqa: BLE001  (each child fails in the same way, and control counts it)
        traceback.print_exc()
    gc.collect()
    gc.freeze()  # what is shared stays shared: the collector does not write to it


if _VARIABLE in os.environ:
    _preload(os.environ.pop(_VARIABLE))
