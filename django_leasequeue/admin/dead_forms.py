"""What an operator fills in about dead letters: why, how fast, a note, for how long not now."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from django_leasequeue.admin.reason import ReasonField
from django_leasequeue.core.bulk_plan import CHUNK, Options

__all__ = ["NoteForm", "RunForm", "SnoozeForm"]

_LARGEST = 2**31


class RunForm(forms.Form):
    """A bulk run that is about to start: what was shown, and how to go about it."""

    #: The database's time when the jobs were counted, and what was counted.
    shown_at = forms.CharField(widget=forms.HiddenInput)
    #: How many were counted, and how far back; nothing older is meant unless more are asked for.
    shown = forms.IntegerField(widget=forms.HiddenInput, min_value=0)
    oldest = forms.CharField(widget=forms.HiddenInput, required=False)
    #: What tells this confirmation from any that was sent before.
    token = forms.CharField(widget=forms.HiddenInput, max_length=64)
    #: The fingerprints of the groups that were snoozed.
    without = forms.CharField(widget=forms.HiddenInput, required=False)
    most = forms.IntegerField(
        label=_("At most"),
        min_value=1,
        max_value=_LARGEST,
        help_text=_("So many jobs are changed and no more; what dies from now on is left alone."),
    )
    reason = ReasonField()
    rate = forms.FloatField(
        label=_("Rate"),
        required=False,
        min_value=0.001,
        max_value=1_000_000,
        help_text=_("Jobs a second at most. Empty: as fast as the database allows."),
    )
    canary = forms.IntegerField(
        label=_("Canary"),
        required=False,
        min_value=0,
        max_value=CHUNK,
        help_text=_("So many go first; the others follow once all of these are done."),
    )
    spread = forms.FloatField(
        label=_("Spread"),
        required=False,
        min_value=0,
        max_value=30 * 86400,
        help_text=_("They become available at random moments of so many seconds."),
    )

    def __init__(self, *args: Any, only_cancels: bool = False, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if only_cancels:
            del self.fields["canary"], self.fields["spread"]

    def show(self, counted: Mapping[str, Any]) -> None:
        """Hold what is shown now, also where something else was shown before it was sent.

        What was filled in stays; but as many as were shown then are now as many as are shown.
        """
        self.initial = dict(counted)
        if self.is_bound:
            sent = dict(self.data.items())
            for name in ("shown_at", "shown", "oldest", "token", "without"):
                sent[name] = counted[name]
            if self.data.get("most") == self.data.get("shown"):
                sent["most"] = counted["most"]
            self.data = sent

    def options(self) -> Options:
        """Return how the run goes about it."""
        data = self.cleaned_data
        return Options(
            rate=data["rate"],
            canary=data.get("canary") or 0,
            spread=data.get("spread") or 0.0,
            most=data["most"],
        )


class NoteForm(forms.Form):
    """What operators ought to know about a group."""

    note = forms.CharField(
        label=_("Note"),
        required=False,
        max_length=10_000,
        widget=forms.Textarea(attrs={"rows": 3, "class": "vLargeTextField"}),
    )


class SnoozeForm(forms.Form):
    """For how many hours a group stays out of sight; 0 shows it again."""

    hours = forms.IntegerField(label=_("Snooze for hours"), min_value=0, max_value=24 * 365)
    reason = ReasonField()
