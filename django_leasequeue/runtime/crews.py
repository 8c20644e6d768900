"""Which crew a worker's options ask for."""

from __future__ import annotations

from collections.abc import Callable

from django.conf import settings
from django.db import connections

from django_leasequeue.runtime.children import Children, Rules
from django_leasequeue.runtime.crew import Crew
from django_leasequeue.runtime.executor import Executor
from django_leasequeue.runtime.interrupts import Interrupts
from django_leasequeue.runtime.limits import Limits
from django_leasequeue.runtime.options import WorkerOptions
from django_leasequeue.runtime.preload import ChildPlan
from django_leasequeue.runtime.shutdown import Shutdown
from django_leasequeue.runtime.slots import Slot
from django_leasequeue.runtime.solo import Solo

__all__ = ["crew_for"]

_MIB = 1024 * 1024


def crew_for(
    options: WorkerOptions,
    limits: Limits,
    interrupts: Interrupts,
    shutdown: Shutdown,
    end_sessions: Callable[[set[int]], None],
) -> Crew:
    """Return the crew; no process is started before its first use.

    `end_sessions` is called with the database sessions of a child that was killed.
    """
    max_bytes = int(options.max_memory * _MIB)
    if options.solo:
        executor = Executor(options.database, interrupts, lambda: shutdown.stopping)
        slot = Slot(executor, sender=Solo, weighs=max_bytes > 0)
        return Solo(slot, limits, shutdown, max_bytes)
    plan = ChildPlan(
        settings_module=settings.SETTINGS_MODULE,
        database=options.database,
        threads=options.threads,
        log_format=options.log_format,
        max_bytes=max_bytes,
        names={alias: connections[alias].settings_dict["NAME"] for alias in connections},
    )
    rules = Rules(options.processes, options.threads, options.max_jobs_per_child, max_bytes)
    return Children(plan, rules, end_sessions)
