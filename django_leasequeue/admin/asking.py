"""The page between a list's action and what it does: what is meant, and why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.forms import Form
from django.http import HttpRequest, HttpResponse

from django_leasequeue.admin.base import OperatorAdmin
from django_leasequeue.admin.pages import page

if TYPE_CHECKING:
    from django.utils.functional import _StrOrPromise

__all__ = ["Question", "answer_of", "ask"]


@dataclass(frozen=True)
class Question:
    """What an action is about to do; without a `verb` there is nothing that it could do."""

    title: _StrOrPromise
    verb: _StrOrPromise
    said: Sequence[str]
    #: The names of what it is for, where they are few.
    items: Sequence[str] = ()
    #: What the answer carries along, besides what was selected.
    carried: Sequence[tuple[str, object]] = ()
    #: Where to go instead; "": where it was asked.
    back: str = ""


def answer_of(request: HttpRequest) -> Any:
    """Return what an `ask`ed form is bound to: the answer, or None while nothing was asked."""
    return request.POST if "confirm" in request.POST else None


def ask(
    admin_page: OperatorAdmin[Any],
    request: HttpRequest,
    question: Question,
    form: Form,
    selected: Sequence[object] | None = None,
) -> HttpResponse:
    """Return the page; its answer is posted to the same address, as the same action.

    `selected` are ids that take the place of what the request has selected.
    """
    if selected is None:
        across = request.POST.get("select_across", "0")
        ticked: Sequence[object] = request.POST.getlist(ACTION_CHECKBOX_NAME)
    else:
        across, ticked = "0", selected
    carried = [
        ("action", request.POST.get("action", "")),
        ("select_across", across),
        *((ACTION_CHECKBOX_NAME, str(pk)) for pk in ticked),
        *question.carried,
    ]
    context = {"question": question, "form": form, "carried": carried}
    return page(admin_page, request, "action_confirm.html", question.title, context)
