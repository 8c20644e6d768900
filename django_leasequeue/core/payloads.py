"""A new payload for a job that is there already, checked and signed as at an enqueue."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from django.db.backends.base.base import BaseDatabaseWrapper

from django_leasequeue.codec import encode
from django_leasequeue.conf import get_conf
from django_leasequeue.core.dialect import dialect_for
from django_leasequeue.core.request import Request, build_request
from django_leasequeue.core.sealing import MAX_CONTEXT_BYTES, sign_request
from django_leasequeue.exceptions import EnqueueError
from django_leasequeue.models import Job
from django_leasequeue.registry import registry
from django_leasequeue.signing import verify

__all__ = ["Columns", "payload_columns", "replacement"]


class Columns(NamedTuple):
    """Further assignments of an UPDATE, each after a comma, and their parameters."""

    change: str = ""
    params: tuple[Any, ...] = ()

    def __repr__(self) -> str:
        return f"<Columns{self.change}>"  # no values


def replacement(job: Job, payload: Mapping[str, Any]) -> Request:
    """Return what the job would be enqueued as with this payload.

    That is of the version that is declared here; where none is, of the one that it had. Raises
    EnqueueError for what could not be enqueued, and where the job's version is newer than the code.
    """
    request = build_request(
        job.job_type, payload, queue=job.queue_name, max_attempts=job.max_attempts
    )
    if registry.get(job.job_type) is None:
        # Whoever knows the type would take another version's payload for one of version 1.
        return replace(request, payload_version=job.payload_version)
    if job.payload_version > request.payload_version:
        raise EnqueueError(
            f"the payload of job {job.pk} is of version {job.payload_version}, and this process "
            f"knows {request.payload_version}: edit it where newer code runs"
        )
    return request


def payload_columns(
    connection: BaseDatabaseWrapper, job_id: int, payload: Mapping[str, Any]
) -> Columns | None:
    """Return what replaces a job's payload; None when there is no such job.

    What the signature covers besides never changes once a job is there. Raises EnqueueError for
    a payload that could not be enqueued, and for a job whose own signature is not right: its type
    and its context may be forged, and would be signed with the payload.
    """
    job = Job.objects.using(connection.alias).filter(pk=job_id).first()
    if job is None:
        return None
    if get_conf().SIGNING_KEYS and not verify(job):
        raise EnqueueError(
            f"the signature of job {job_id} is missing or wrong: look at the job, then let "
            "'manage.py leasequeue sign' sign it"
        )
    request = replacement(job, payload)
    context = encode(job.context, what="context", limit=MAX_CONTEXT_BYTES)
    request = sign_request(replace(request, idempotency_key=job.idempotency_key, context=context))
    json_param = dialect_for(connection).json_param
    return Columns(
        # A checkpoint is a place in the old payload.
        f", payload = {json_param}, payload_version = %s, signature = %s, "
        "checkpoint = NULL, progress = NULL",
        (request.payload, request.payload_version, request.signature),
    )
