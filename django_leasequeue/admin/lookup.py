"""Finding jobs by an index: ids and keys from a search term, queue names by dives."""

from __future__ import annotations

import re

from django.db.models import Q

from django_leasequeue.codec import digest_key
from django_leasequeue.models import Job

__all__ = ["matching_ids", "queue_names"]

_ID = re.compile(r"#?([0-9]{1,18})")
_DIGEST = re.compile(r"[0-9a-fA-F]{64}")
_MOST_QUEUES = 100


def queue_names(using: str, most: int = _MOST_QUEUES) -> list[str]:
    """Return the names of the first queues that have jobs of any status, one index dive each."""
    jobs = Job.objects.using(using).order_by("queue_name").values_list("queue_name", flat=True)
    names: list[str] = []
    while len(names) < most:
        rest = jobs.filter(queue_name__gt=names[-1]) if names else jobs
        if not (found := list(rest[:1])):
            break
        names += found
    return names


def matching_ids(using: str, term: str) -> set[int]:
    """Return the ids of the jobs that a search term means.

    The term is an id (with or without #), an idempotency_key as it is in the column, or the text
    of a key. A key that lasts until its job is finished is found that long.
    """
    found = {int(match[1])} if (match := _ID.fullmatch(term)) else set()
    digests = [digest_key(term)]
    if _DIGEST.fullmatch(term):
        digests.append(term.lower())
    jobs = Job.objects.using(using)  # both unique indexes begin with the key
    for column in ("idempotency_key", "live_key"):
        found.update(jobs.filter(Q((f"{column}__in", digests))).values_list("pk", flat=True))
    return found
