"""A durable, lease-based job queue for Django in the project's own database.

Public names are loaded on first use, so that importing this package touches no models.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from django_leasequeue.version import __version__ as __version__

if TYPE_CHECKING:
    from django_leasequeue.api import JobType, job
    from django_leasequeue.core.bulk import cancel_many, requeue_many
    from django_leasequeue.core.bulk_filter import JobFilter
    from django_leasequeue.core.enqueue import aenqueue, aenqueue_many, enqueue, enqueue_many
    from django_leasequeue.core.operate import (
        cancel,
        erase,
        pause,
        recover,
        requeue,
        reschedule,
        resume,
    )
    from django_leasequeue.core.prune import Pruned, prune
    from django_leasequeue.core.schedules import (
        add_schedule,
        disable_schedule,
        edit_schedule,
        enable_schedule,
        list_schedules,
        next_ticks,
        run_schedule,
    )
    from django_leasequeue.exceptions import (
        EnqueueError,
        JobCancelled,
        JobCrashed,
        JobError,
        JobExpired,
        JobTimeout,
        KeyTaken,
        LeaseLost,
        LeaseQueueError,
        Reject,
        RejectedJob,
        Retry,
        ScheduleError,
        Skip,
        Snooze,
    )
    from django_leasequeue.results import JobResult
    from django_leasequeue.retry import Exponential, Fixed, Linear
    from django_leasequeue.runtime.context import JobContext
    from django_leasequeue.runtime.worker import Worker
    from django_leasequeue.signing import sign, verify

_HOMES = {
    "api": ("JobType", "job"),
    "core.bulk": ("cancel_many", "requeue_many"),
    "core.bulk_filter": ("JobFilter",),
    "core.enqueue": ("aenqueue", "aenqueue_many", "enqueue", "enqueue_many"),
    "core.operate": (
        "cancel",
        "erase",
        "pause",
        "recover",
        "requeue",
        "reschedule",
        "resume",
    ),
    "core.prune": ("Pruned", "prune"),
    "core.schedules": (
        "add_schedule",
        "disable_schedule",
        "edit_schedule",
        "enable_schedule",
        "list_schedules",
        "next_ticks",
        "run_schedule",
    ),
    "exceptions": (
        "EnqueueError",
        "JobCancelled",
        "JobCrashed",
        "JobError",
        "JobExpired",
        "JobTimeout",
        "KeyTaken",
        "LeaseLost",
        "LeaseQueueError",
        "Reject",
        "RejectedJob",
        "Retry",
        "ScheduleError",
        "Skip",
        "Snooze",
    ),
    "results": ("JobResult",),
    "retry": ("Exponential", "Fixed", "Linear"),
    "runtime.context": ("JobContext",),
    "runtime.worker": ("Worker",),
    "signing": ("sign", "verify"),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "EnqueueError",
    "Exponential",
    "Fixed",
    "JobCancelled",
    "JobContext",
    "JobCrashed",
    "JobError",
    "JobExpired",
    "JobFilter",
    "JobResult",
    "JobTimeout",
    "JobType",
    "KeyTaken",
    "LeaseLost",
    "LeaseQueueError",
    "Linear",
    "Pruned",
    "Reject",
    "RejectedJob",
    "Retry",
    "ScheduleError",
    "Skip",
    "Snooze",
    "Worker",
    "add_schedule",
    "aenqueue",
    "aenqueue_many",
    "cancel",
    "cancel_many",
    "disable_schedule",
    "edit_schedule",
    "enable_schedule",
    "enqueue",
    "enqueue_many",
    "erase",
    "job",
    "list_schedules",
    "next_ticks",
    "pause",
    "prune",
    "recover",
    "requeue",
    "requeue_many",
    "reschedule",
    "resume",
    "run_schedule",
    "sign",
    "verify",
]


def __getattr__(name: str) -> Any:
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{home}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
