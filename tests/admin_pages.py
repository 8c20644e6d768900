"""Every address of the queue's admin pages, over one job, run, group, queue and worker."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.test import Client

from django_leasequeue.core.clock import UtcNow
from django_leasequeue.models import BulkRun, DeadGroup, Job, JobAttempt, Queue, Worker

FINGERPRINT = "a" * 16
VIEW = frozenset({"view_job"})


@dataclass(frozen=True)
class Address:
    """An address, how it is asked, and the permissions without which it refuses."""

    url: str
    needs: frozenset[str]
    posts: bool = False

    def ask(self, client: Client, **data: Any) -> Any:
        """Return the answer of a GET, or of a POST with these fields."""
        return client.post(self.url, data) if self.posts else client.get(self.url)


def addresses(root: str = "/admin/leasequeue/") -> list[Address]:
    """Return the addresses over the rows that `arrange` made."""
    job, run, queue, worker = (
        model.objects.values_list("pk", flat=True).get() for model in (Job, BulkRun, Queue, Worker)
    )
    dead, group = f"{root}deadgroup/", f"?fingerprint={FINGERPRINT}"
    found = [
        Address(f"{root}job/", VIEW),
        Address(f"{root}job/?status=dead&queue=x&type=y&q=z", VIEW),
        Address(f"{root}job/{job}/change/", VIEW),
        Address(f"{root}job/{job}/history/", VIEW),
        Address(f"{root}job/{job}/payload/", VIEW | {"requeue_job", "edit_payload"}),
        Address(f"{root}job/{job}/payload/", VIEW | {"requeue_job", "edit_payload"}, posts=True),
        Address(dead, VIEW),
        Address(f"{dead}group/{group}", VIEW),
        Address(f"{dead}group/note/{group}", VIEW | {"change_deadgroup"}, posts=True),
        Address(f"{dead}group/snooze/{group}", VIEW | {"change_deadgroup"}, posts=True),
        Address(f"{root}bulkrun/{run}/go/", frozenset({"requeue_job"}), posts=True),
        Address(f"{root}bulkrun/{run}/cancel/", frozenset({"requeue_job"}), posts=True),
        Address(f"{root}queue/", frozenset({"view_queue"})),
        Address(f"{root}queue/live/", frozenset({"view_queue"})),
        Address(f"{root}queue/dashboard/", frozenset({"view_queue"})),
        Address(f"{root}queue/{queue}/change/", frozenset({"view_queue"})),
        Address(f"{root}queue/pause/", frozenset({"pause_queue"}), posts=True),
        Address(f"{root}queue/resume/", frozenset({"pause_queue"}), posts=True),
        Address(f"{root}worker/", frozenset({"view_worker"})),
        Address(f"{root}worker/live/", frozenset({"view_worker"})),
        Address(f"{root}worker/{worker}/change/", frozenset({"view_worker"})),
        Address(f"{root}worker/{worker}/drain/", frozenset({"drain_worker"}), posts=True),
    ]
    for operation in ("requeue", "cancel"):
        needs = VIEW | {f"{operation}_job"}
        found += [
            Address(f"{root}job/{job}/act/{operation}/", needs, posts=True),
            Address(f"{dead}{operation}/confirm/{group}", needs),
            Address(f"{dead}{operation}/confirm/{group}", needs, posts=True),
            Address(f"{dead}{operation}/selected/{group}", needs, posts=True),
        ]
    return found


def arrange(text: str = "plain", payload: Any = None) -> int:
    """Make one row of each kind, which holds `text` wherever it can; return the job's id."""
    job = Job.objects.create(
        job_type=text[:255],
        queue_name=text[:64],
        payload={"text": text, text[:50]: [text]} if payload is None else payload,
        context={"text": text},
        result={"text": text},
        status="dead",
        fingerprint=FINGERPRINT,
        last_error=text[:4000],
        leased_by=text[:255],
        attempts=1,
        claims=1,
        finished_at=UtcNow(),
    )
    JobAttempt.objects.create(
        job_id=job.pk, number=1, token=b"t" * 16, outcome="failed", worker=text[:255],
        error_class=text[:255], error_text=text[:4000], frames=[text[:500]],
    )  # fmt: skip
    DeadGroup.objects.create(fingerprint=FINGERPRINT, note=text)
    Queue.objects.create(
        name=text[:64], paused_at=UtcNow(), paused_by=text[:255], pause_reason=text[:1000]
    )
    Worker.objects.create(name=text[:255], host=text[:255], pid=1, version="1", queues=[text[:64]])
    BulkRun.objects.create(
        operation="requeue", state="stopped", note=text[:1000], by=text[:255],
        filter={"statuses": ["dead"], "job_type": text[:255]}, left_out={"gone": 1},
    )  # fmt: skip
    return int(job.pk)
