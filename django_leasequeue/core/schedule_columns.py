"""What may be written into a schedule's row: checked as an enqueue of its job would be."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django_leasequeue.codec import clean_text, decode_payload
from django_leasequeue.core.request import build_request
from django_leasequeue.exceptions import EnqueueError, ScheduleError
from django_leasequeue.grid import Rule, checked_catch_up

__all__ = ["checked_schedule", "checked_text"]


def checked_schedule(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the columns of what `add_schedule` takes, checked as an enqueue of it would be.

    Raises ScheduleError.
    """
    rule = Rule.of(cron=given["cron"], every=given["every"], timezone=given["timezone"])
    key = given["key"] or ""
    try:
        options = {"queue": given["queue"], "priority": given["priority"]}
        request = build_request(given["job_type"], given["payload"], **options)
    except EnqueueError as error:
        raise ScheduleError(str(error)) from None
    if key:
        checked_text("key", key)
    return {
        "job_type": request.job_type,
        "payload": decode_payload(request.payload),
        "payload_version": request.payload_version,
        "queue_name": request.queue,
        "priority": request.priority,
        "key": key,
        "cron": rule.cron,
        "every": rule.every,
        "timezone": rule.timezone,
        "catch_up": checked_catch_up(given["catch_up"]),
    }


def checked_text(what: str, value: Any) -> str:
    """Return a name or a key that a schedule can have; raise ScheduleError for another value."""
    if not isinstance(value, str) or not value or clean_text(value, 255) != value:
        raise ScheduleError(
            f"a schedule's {what} is a text of 1 to 255 characters that every database can store"
        )
    return value
