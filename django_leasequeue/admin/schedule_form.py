"""The form of a schedule: what the core would refuse is said beside the fields."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django import forms
from django.utils.text import capfirst
from django.utils.translation import gettext_lazy as _

from django_leasequeue.admin.reason import ReasonField
from django_leasequeue.conf import get_conf
from django_leasequeue.core.schedule_columns import checked_schedule
from django_leasequeue.exceptions import ScheduleError
from django_leasequeue.grid import CATCH_UPS
from django_leasequeue.models import Schedule

__all__ = ["ScheduleForm"]

if TYPE_CHECKING:
    _ModelForm = forms.ModelForm[Schedule]  # generic in the stubs alone
else:
    _ModelForm = forms.ModelForm


class ScheduleForm(_ModelForm):
    """Fills `checked` with the columns to write, once it is valid."""

    payload = forms.JSONField(required=False, initial=dict)
    queue_name = forms.CharField(required=False, help_text=_("Empty: as the job type declares."))
    priority = forms.IntegerField(required=False)
    key = forms.CharField(
        required=False, help_text=_("While a job of a schedule with this key lives, none is made.")
    )
    cron = forms.CharField(
        required=False, help_text=_("Minute, hour, day of month, month, day of week; or @daily.")
    )
    every = forms.FloatField(required=False, help_text=_("Seconds, instead of cron."))
    timezone = forms.CharField()
    catch_up = forms.ChoiceField(choices=[(word, word) for word in CATCH_UPS])
    reason = ReasonField()

    class Meta:
        model = Schedule
        fields = "__all__"

    checked: dict[str, Any]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        columns = {column.name: column.verbose_name for column in Schedule._meta.fields}
        for name, field in self.fields.items():
            # A field that is declared here has no words of its own.
            field.label = field.label or capfirst(columns[name])

    def clean(self) -> dict[str, Any]:
        """Check all fields as the core does."""
        data = super().clean() or self.cleaned_data
        if self.errors:
            return data
        names = ("cron", "every", "timezone", "catch_up", "key", "priority")
        given = {name: data.get(name) for name in names}
        payload = data.get("payload")  # None when the field was left empty
        given |= {"job_type": data["job_type"], "payload": {} if payload is None else payload}
        try:
            self.checked = checked_schedule({**given, "queue": data.get("queue_name") or None})
        except ScheduleError as error:
            self.add_error(None, str(error))
        return data

    def validate_unique(self) -> None:
        """Look for the name where the schedules are, whatever the project's routers say."""
        rows = Schedule.objects.using(get_conf().DATABASE).exclude(pk=self.instance.pk)
        if "name" in self.cleaned_data and rows.filter(name=self.cleaned_data["name"]).exists():
            self.add_error("name", _("There is a schedule of this name already."))
