"""Which dead letters an address means: read from its query, and written back into it."""

from __future__ import annotations

from datetime import UTC, datetime
from urllib.parse import urlencode

from django.http import Http404, QueryDict

from django_leasequeue.admin.groups import Wanted
from django_leasequeue.core.bulk_filter import JobFilter
from django_leasequeue.exceptions import LeaseQueueError

__all__ = ["moment_of", "query_of", "wanted_of"]

_NAMES = {"queue": "queue", "type": "job_type", "fingerprint": "fingerprint"}


def wanted_of(query: QueryDict) -> Wanted:
    """Return what the query names; raises Http404 for what no job can have."""
    # An empty fingerprint is a group; an empty choice of the others is none.
    queue, job_type = str(query.get("queue", "")), str(query.get("type", ""))
    fingerprint = str(query["fingerprint"]) if "fingerprint" in query else None
    wanted = Wanted(queue or None, job_type or None, fingerprint)
    try:
        JobFilter(**wanted._asdict())
    except LeaseQueueError as error:
        raise Http404(str(error)) from None
    return wanted


def query_of(wanted: Wanted) -> str:
    """Return the query by which `wanted_of` finds the same."""
    values = {name: getattr(wanted, field) for name, field in _NAMES.items()}
    return urlencode({name: value for name, value in values.items() if value is not None})


def moment_of(text: str) -> datetime | None:
    """Return the time that a page carried along, None for anything else."""
    try:
        moment = datetime.fromisoformat(text)
        return moment.astimezone(UTC) if moment.tzinfo is not None else None
    except (OverflowError, ValueError):
        return None
