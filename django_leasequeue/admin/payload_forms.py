"""A payload as an operator edits it: JSON text, checked as at an enqueue, and what it changes."""

from __future__ import annotations

import difflib
import json
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.utils.translation import gettext_lazy as _

from django_leasequeue.admin.display import encodable
from django_leasequeue.admin.reason import ReasonField
from django_leasequeue.codec import decode_payload
from django_leasequeue.conf import get_conf
from django_leasequeue.core.payloads import replacement
from django_leasequeue.exceptions import EnqueueError, RejectedJob
from django_leasequeue.models import Job
from django_leasequeue.registry import registry

__all__ = ["DiffLine", "PayloadForm", "diff", "indented", "presented"]

#: Indents and escapes make a text larger than what is stored.
_WRITTEN_LARGER = 12
_MARKS = {"+": "add", "-": "del"}


class _Twice(Exception):
    """A key was met a second time."""


@dataclass(frozen=True)
class DiffLine:
    """A line of a diff and the kind of it: add, del or same."""

    kind: str
    text: str = field(repr=False)


class PayloadForm(forms.Form):
    """A job's new payload and why; valid only for what could be enqueued as this job."""

    payload = forms.CharField(
        label=_("Payload"),
        strip=False,
        widget=forms.Textarea(
            attrs={"rows": 20, "class": "vLargeTextField", "spellcheck": "false"}
        ),
        help_text=_("A JSON object."),
    )
    #: The payload that was edited, as it was: another one by now is not overwritten.
    edited = forms.CharField(widget=forms.HiddenInput)
    reason = ReasonField()

    def __init__(self, *args: Any, job: Job, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.job = job

    def clean_payload(self) -> dict[str, Any]:
        """Return the payload decoded; the message of an error holds no values of it."""
        text = self.cleaned_data["payload"]
        try:
            _check(text)
            payload = decode_payload(text)
            replacement(self.job, payload)
            diff(payload, payload)
        except RecursionError:
            raise ValidationError(
                _("This cannot be a payload: %(why)s"), params={"why": _("it is nested too deeply")}
            ) from None
        except (EnqueueError, RejectedJob, TypeError, ValueError) as error:
            raise ValidationError(
                _("This cannot be a payload: %(why)s"), params={"why": error}
            ) from None
        return payload


def _check(text: str) -> None:
    """Raise ValueError for a text that is too large, and for an object with a key twice.

    Of such a key only the last value would be kept.
    """
    if len(text) > get_conf().MAX_PAYLOAD_BYTES * _WRITTEN_LARGER:
        raise ValueError(_("it is larger than a payload may be"))

    def pairs(found: list[tuple[str, Any]]) -> None:
        if len({key for key, _value in found}) < len(found):
            raise _Twice

    try:
        json.loads(text, object_pairs_hook=pairs)
    except _Twice:
        raise ValueError(_("an object in it has a key twice")) from None
    except ValueError:
        return  # it is no JSON: the decoder says so


def indented(payload: Any, *, sort: bool = False) -> str:
    """Return JSON as it is edited; keys in their order unless they are to be sorted."""
    return encodable(json.dumps(payload, indent=2, ensure_ascii=False, sort_keys=sort))


def presented(job: Job) -> tuple[Any, int]:
    """Return the payload to begin with, and the version that it is written as.

    One of an older version is as its worker would make it of it; where that fails, as it is.
    """
    declared = registry.get(job.job_type)
    if declared is None or job.payload_version >= declared.version:
        return job.payload, job.payload_version
    try:
        payload = declared.present(deepcopy(job.payload), job.payload_version)
        indented(payload)
    except Exception:  # noqa: BLE001 (the project's own function; what it expects is for who edits)
        payload = job.payload
    return payload, declared.version


def diff(before: Any, after: Any) -> list[DiffLine]:
    """Return what differs between two payloads, line by line, with three lines around it."""
    # By value: a database may give keys back in an order of its own.
    old, new = (indented(one, sort=True).splitlines() for one in (before, after))
    lines = difflib.unified_diff(old, new, lineterm="", n=3)
    # The first two lines name files.
    return [DiffLine(_MARKS.get(line[:1], "same"), line) for line in list(lines)[2:]]
