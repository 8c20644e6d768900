"""Values as an operator reads them: times, status words, JSON, the attempts. All of it escaped."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable
from datetime import datetime
from urllib.parse import urlencode

from django.utils import timezone
from django.utils.formats import date_format
from django.utils.functional import Promise
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.text import Truncator
from django.utils.timesince import timesince
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from django_leasequeue.codec import MASK, masked
from django_leasequeue.models import Job, JobAttempt
from django_leasequeue.outcomes import End
from django_leasequeue.statuses import Status

__all__ = [
    "EMPTY",
    "ago",
    "attempts_table",
    "block",
    "encodable",
    "filter_link",
    "moment",
    "named",
    "pretty_json",
    "shortened",
    "status_words",
    "word",
]

EMPTY = "-"
_MOST_JSON = 100_000
_SHORT = 100

_WORDS: dict[str, str | Promise] = {
    Status.READY: _("ready"),
    Status.RESERVED: _("reserved"),
    Status.DONE: _("done"),
    Status.DEAD: _("dead"),
    Status.CANCELLED: _("cancelled"),
    Status.PARKED: _("parked"),
}
_OUTCOMES: dict[str, str | Promise] = {
    End.COMPLETED: _("completed"),
    End.SKIPPED: _("skipped"),
    End.FAILED: _("failed"),
    End.TIMED_OUT: _("timed out"),
    End.REJECTED: _("rejected"),
    End.CANCELLED: _("cancelled"),
    End.CRASHED: _("crashed"),
    End.EXPIRED: _("expired"),
    End.SNOOZED: _("snoozed"),
    End.RELEASED: _("released"),
}


def word(status: str) -> str:
    """Return a status in the reader's language; an unknown one as it is."""
    return str(_WORDS.get(status, status))


def status_words(job: Job, now: datetime) -> str:
    """Return the job's status as of `now`, the database's time: scheduled and retrying too."""
    if job.status == Status.READY and job.available_at > now:
        return gettext("retrying") if job.attempts else gettext("scheduled")
    if job.status == Status.RESERVED and job.lease_until is not None and job.lease_until <= now:
        return gettext("reserved, lease expired")
    return word(job.status)


def moment(value: datetime | None) -> str:
    """Return a time in the reader's time zone, to the second, with the zone's name."""
    if value is None:
        return EMPTY
    try:
        local = timezone.localtime(value)
    except OverflowError:  # plain SQL for "never", at the end of Python's calendar
        local = value
    return date_format(local, "Y-m-d H:i:s T")


def ago(value: datetime | None, now: datetime) -> str:
    """Return how long before `now`, or after it, a time is, in its two largest units."""
    if value is None:
        return EMPTY
    if value > now:
        return gettext("in %s") % timesince(now, value)
    return gettext("%s ago") % timesince(value, now)


def shortened(text: str) -> str:
    """Return the first line of an error, cut to what a list has room for."""
    return Truncator(text.partition("\n")[0]).chars(_SHORT)


def named(name: str) -> str:
    """Return a name as it is, and words for the empty one: plain SQL can put it in."""
    return name or gettext("(empty)")


def filter_link(parameter: str) -> Callable[[str], SafeString]:
    """Return a function that links a name to the list of all that have it."""

    def link(name: str) -> SafeString:
        return format_html('<a href="?{}">{}</a>', urlencode({parameter: name}), named(name))

    return link


def block(text: str) -> str | SafeString:
    """Return text with its line breaks and spaces as they are."""
    return format_html("<pre>{}</pre>", text) if text else EMPTY


def encodable(text: str) -> str:
    """Return text with JSON's escapes in place of lone surrogates.

    SQLite takes JSON with those from plain SQL; no page can hold them.
    """
    return text.encode("utf-8", "backslashreplace").decode()


def pretty_json(text: str | None, sensitive: Collection[str] = ()) -> str | SafeString:
    """Return a JSON column's text indented, `sensitive` fields masked, cut if it is huge.

    What Python refuses is shown as it is, unless something might have to be masked in it.
    """
    if text is None:
        return EMPTY
    try:
        shown = _indented(text, sensitive)
    except (ValueError, RecursionError):
        shown = MASK if sensitive else text
    shown = encodable(shown)
    if len(shown) <= _MOST_JSON:
        return block(shown)
    note = gettext("Only the first %d characters are shown.") % _MOST_JSON
    return format_html("{}<p>{}</p>", block(shown[:_MOST_JSON]), note)


def _indented(text: str, sensitive: Collection[str]) -> str:
    """Return JSON text indented, as far as it will be shown: a deep document makes much of it."""
    encoder = json.JSONEncoder(indent=2, ensure_ascii=False, allow_nan=False)
    parts: list[str] = []
    size = 0
    for part in encoder.iterencode(masked(json.loads(text), sensitive)):
        parts.append(part)
        size += len(part)
        if size > _MOST_JSON:
            break
    return "".join(parts)


def attempts_table(attempts: Iterable[JobAttempt], note: str) -> SafeString:
    """Return a table of attempts in the order given, with `note` under it."""
    titles = [
        gettext("attempt"),
        gettext("outcome"),
        gettext("worker"),
        gettext("started"),
        gettext("ended"),
        gettext("seconds"),
        gettext("error"),
    ]
    return format_html(
        '<div class="leasequeue-scroll" tabindex="0"><table><thead><tr>{}</tr></thead>'
        "<tbody>{}</tbody></table></div><p>{}</p>",
        format_html_join("", '<th scope="col">{}</th>', ([title] for title in titles)),
        format_html_join(
            "", "<tr>" + "<td>{}</td>" * len(titles) + "</tr>", map(_attempt_cells, attempts)
        ),
        note,
    )


def _attempt_cells(attempt: JobAttempt) -> tuple[object, ...]:
    started, ended = attempt.started_at, attempt.finished_at
    return (
        attempt.number,
        str(_OUTCOMES.get(attempt.outcome, attempt.outcome)),
        attempt.worker or EMPTY,
        moment(started),
        moment(ended),
        EMPTY if started is None else f"{(ended - started).total_seconds():.3f}",
        _error(attempt),
    )


def _error(attempt: JobAttempt) -> str | SafeString:
    error = attempt.error_text or attempt.error_class or EMPTY
    if not attempt.frames:
        return error
    frames = "\n".join(map(str, attempt.frames))
    return format_html("<details><summary>{}</summary>{}</details>", error, block(frames))
