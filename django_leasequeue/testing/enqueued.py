"""Seeing what was enqueued, in the rows of the test's own database."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from django_leasequeue.codec import encode
from django_leasequeue.conf import get_conf
from django_leasequeue.declaration import Declaration
from django_leasequeue.models import Job
from django_leasequeue.registry import registry
from django_leasequeue.signals import job_enqueued

__all__ = ["CapturedJobs", "assert_enqueued", "assert_not_enqueued", "capture_jobs"]

_SHOWN = 20


@dataclass(slots=True)
class CapturedJobs:
    """The jobs that were enqueued in a `capture_jobs` block, in order, as they are now."""

    using: str
    #: Id and idempotency key: after a rollback SQLite gives an id to another job.
    ids: list[tuple[int, str]] = field(default_factory=list)

    @property
    def jobs(self) -> list[Job]:
        """The rows of the jobs; one whose transaction was rolled back has none."""
        found = Job.objects.using(self.using).in_bulk([job_id for job_id, _key in self.ids])
        rows = [(found.get(job_id), key) for job_id, key in self.ids]
        return [job for job, key in rows if job is not None and job.idempotency_key == key]

    def __len__(self) -> int:
        return len(self.jobs)

    def __iter__(self) -> Iterator[Job]:
        return iter(self.jobs)

    def assert_enqueued(self, job: Any, **wanted: Any) -> list[Job]:
        """Do what `assert_enqueued` does, among the jobs of the block only.

        `job` and what is `wanted` are its arguments. Raises AssertionError as it does.
        """
        return _assert_enqueued(self.jobs, job, **wanted)

    def assert_not_enqueued(self, job: Any, **wanted: Any) -> None:
        """Raise AssertionError when such a job was enqueued in the block.

        `job` and what is `wanted` are the arguments of `assert_enqueued`.
        """
        _assert_enqueued(self.jobs, job, count=0, **wanted)


@contextmanager
def capture_jobs(*, using: str | None = None) -> Iterator[CapturedJobs]:
    """Collect the jobs that are enqueued in the block; a taken key has enqueued none.

    Raises nothing of its own.
    """
    captured = CapturedJobs(using or get_conf().DATABASE)

    def note(sender: Any, job: Job, created: bool, **kwargs: Any) -> None:
        if created and job._state.db == captured.using:  # noqa: SLF001
            captured.ids.append((job.pk, job.idempotency_key))

    job_enqueued.connect(note, sender=Job, weak=False)
    try:
        yield captured
    finally:
        job_enqueued.disconnect(note, sender=Job)


def assert_enqueued(
    job: Any,
    *,
    payload: Mapping[str, Any] | None = None,
    queue: str | None = None,
    count: int | None = None,
    using: str | None = None,
) -> list[Job]:
    """Return the jobs of this type, payload and queue; raise AssertionError unless there are any.

    `job` is a job type, a task of django.tasks, or the name of one. `payload` is compared as the
    database has it; a task's is its arguments by name, or `{"args": […], "kwargs": {…}}`.
    `queue` is the name of theirs. `count` is how many jobs there have to be. Jobs that ran count as
    well.
    """
    rows = Job.objects.using(using or get_conf().DATABASE).order_by("pk")
    return _assert_enqueued(list(rows), job, payload=payload, queue=queue, count=count)


def assert_not_enqueued(job: Any, **wanted: Any) -> None:
    """Raise AssertionError when there is such a job.

    `job` and what is `wanted` are the arguments of `assert_enqueued`.
    """
    assert_enqueued(job, **{**wanted, "count": 0})


def _assert_enqueued(
    jobs: list[Job],
    job: Any,
    *,
    payload: Mapping[str, Any] | None = None,
    queue: str | None = None,
    count: int | None = None,
) -> list[Job]:
    name = _name_of(job)
    fits = _fitting(job, name, payload)
    found = [
        one
        for one in jobs
        if one.job_type == name and fits(one.payload) and (queue is None or one.queue_name == queue)
    ]
    if len(found) == count or (count is None and found):
        return found
    wanted = "a job" if count is None else "no job" if count == 0 else f"{count} jobs"
    details = "".join(
        f", {what} {value!r}"
        for what, value in (("payload", payload), ("queue", queue))
        if value is not None
    )
    raise AssertionError(
        f"expected {wanted} of type {name!r}{details}; found {len(found)}. Enqueued: "
        f"{_listed(jobs)}"
    )


def _listed(jobs: list[Job]) -> str:
    lines = [f"{one.job_type!r} in {one.queue_name!r} with {one.payload!r}" for one in jobs]
    more = f" and {len(lines) - _SHOWN} more" if len(lines) > _SHOWN else ""
    return "; ".join(lines[:_SHOWN]) + more if lines else "nothing"


def _name_of(job: Any) -> str:
    if isinstance(job, Declaration):
        return job.name
    name = getattr(job, "module_path", job)
    if not isinstance(name, str):
        raise TypeError("job is a job type, a task, or the name of one")
    return name


def _fitting(job: Any, name: str, payload: Mapping[str, Any] | None) -> Callable[[Any], bool]:
    """Return what tells whether a stored payload is the one that is looked for."""
    if payload is None:
        return lambda stored: True
    declared = job if isinstance(job, Declaration) else registry.get(name)
    values = dict(payload) if declared is None else declared.as_json(payload)
    wanted = json.loads(encode(values, what="payload", limit=get_conf().MAX_PAYLOAD_BYTES))
    if declared is None:
        return lambda stored: bool(stored == wanted)
    return lambda stored: declared.is_payload(stored, wanted)
