"""Why an operator does something: asked for, and checked before anything is done."""

from __future__ import annotations

import re
from typing import Any

from django import forms
from django.contrib import messages
from django.core.exceptions import ValidationError
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

__all__ = ["ReasonField", "ReasonForm", "reason_of"]

#: Characters of a reason; the pages' own fields end there as well.
_MOST = 500
#: NUL cannot be stored everywhere, and the others make a log unreadable.
_CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")


def _is_a_line(text: str) -> None:
    if _CONTROLS.search(text):
        raise ValidationError(_("A reason is one line, without control characters."))


class ReasonField(forms.CharField):
    """One line of at most 500 characters, which cannot be left out."""

    default_error_messages = {"required": _("Give a reason.")}

    def __init__(self, **options: Any) -> None:
        options = {"label": _("Reason"), "max_length": _MOST, **options}
        super().__init__(**options)
        self.widget.attrs.setdefault("class", "vTextField")
        # Before Django's own, which knows of NUL alone.
        self.validators = [_is_a_line, *self.validators]


class ReasonForm(forms.Form):
    """Asks for nothing but the reason."""

    reason = ReasonField()


def reason_of(request: HttpRequest) -> str | None:
    """Return the reason that was posted, without space around it; as it is, any log can hold it.

    None, after a message that says why, where there is none or it is none: then nothing is to be
    written.
    """
    try:
        reason: str = ReasonField().clean(request.POST.get("reason", ""))
    except ValidationError as error:
        for told in dict.fromkeys(error.messages):
            messages.error(request, told)
        return None
    return reason
