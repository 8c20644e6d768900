"""Which dead letters an address means: read from its query, and written back into it."""

from __future__ import annotations

from datetime import UTC, datetime
from urllib.parse import urlencode

from django.http import Http404, QueryDict
from django.utils.translation import gettext_lazy as _

from django_leasequeue.admin.groups import Wanted
from django_leasequeue.exceptions import LeaseQueueError

__all__ = ["NOT_SHOWN", "moment_of", "query_of", "wanted_of"]

#: For a form whose `shown_at` is missing or garbled: what has come up since cannot be told.
NOT_SHOWN = _("Nothing was done: the form does not say when its page was shown. Load it again.")

_NAMES = {"queue": "queue", "type": "job_type", "fingerprint": "fingerprint"}


def wanted_of(query: QueryDict) -> Wanted:
    """Return what the query names; raises Http404 for what no job can have."""
    # A form sends a field that was left empty: that is all, unless it is said to be a name.
    exact = "exact" in query
    names = {
        field: str(query[name])
        for name, field in _NAMES.items()
        if name in query and (query[name] or exact or name == "fingerprint")
    }
    wanted = Wanted(**names, snoozed="snoozed" in query)
    if not (wanted.fingerprint or "").isascii():  # MySQL would refuse to compare it
        raise Http404("a fingerprint is ASCII text")
    try:
        wanted.job_filter()
    except LeaseQueueError as error:
        raise Http404(str(error)) from None
    return wanted


def query_of(wanted: Wanted, **more: str) -> str:
    """Return the query by which `wanted_of` finds the same, and what else it is to hold."""
    values = {name: getattr(wanted, field) for name, field in _NAMES.items()}
    given = {name: value for name, value in values.items() if value is not None}
    if "" in (wanted.queue, wanted.job_type):
        given["exact"] = "1"
    if wanted.snoozed:
        given["snoozed"] = "1"
    return urlencode({**given, **more})


def moment_of(text: str) -> datetime | None:
    """Return the time that a page carried along, None for anything else."""
    try:
        moment = datetime.fromisoformat(text)
        return moment.astimezone(UTC) if moment.tzinfo is not None else None
    except (OverflowError, ValueError):
        return None
