"""A row of every kind in every table, written as this version writes them."""

from __future__ import annotations

from django.db.backends.base.base import BaseDatabaseWrapper

from django_leasequeue import JobFilter, add_schedule, cancel, enqueue, pause
from django_leasequeue.core.bulk import start
from django_leasequeue.core.bulk_plan import Options
from django_leasequeue.core.dead_letters import annotate
from django_leasequeue.core.settle import Ending, settle
from django_leasequeue.models import Job
from django_leasequeue.outcomes import End, ErrorSummary, Outcome
from tests.core.arrange import claim_jobs
from tests.field.workers import drain
from tests.upgrade.handlers import PAYLOAD, Seen, declared


def play(connection: BaseDatabaseWrapper) -> Seen:
    """Write it all; return what the handlers saw."""
    seen: Seen = []
    with declared(seen, all_known=False):
        enqueue("upgrade.note", PAYLOAD, key="done")
        enqueue("upgrade.steps", {"order": 7}, max_attempts=5)
        enqueue("upgrade.reject", {"order": 8})
        enqueue("upgrade.parked")
        drain()
        add_schedule("nightly", job_type="upgrade.note", every=3600, payload={"tick": True})
        _waiting()
        _running(connection)
    dead = Job.objects.get(job_type="upgrade.reject", bury_tries__gt=0)
    annotate(connection, dead.fingerprint, note="the shop was told")
    start("requeue", JobFilter(job_type="upgrade.reject"), Options(rate=1000), by="root")
    pause("held", by="root", reason="maintenance")
    return seen


def _waiting() -> None:
    enqueue("upgrade.note", {"key": "forever"}, key="order:7")
    enqueue("upgrade.note", {"key": "finished"}, key="order:8", key_until="finished")
    enqueue("upgrade.note", {"later": True}, delay=3600, priority=5, timeout=60)
    enqueue("upgrade.note", {"queue": "held"}, queue="held")
    cancel(enqueue("upgrade.note", {"cancelled": True}))


def _running(connection: BaseDatabaseWrapper) -> None:
    """Leave one job reserved, and one dead whose hook has not run."""
    enqueue("upgrade.note", {"reserved": True}, queue="running")
    doomed = enqueue("upgrade.reject", {"order": 9}, queue="running")
    error = ErrorSummary("Reject", "Reject: no such order")
    for job in claim_jobs(connection, 2, queues="running"):
        if job.job_id == doomed.pk:
            settle(connection, [Ending(job.lease, Outcome(End.REJECTED, error=error, bury=True))])
