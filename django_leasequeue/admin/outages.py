"""What a page says when the queue's database refuses or does not answer: no traceback, but why."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import wraps
from typing import Any

from django.conf import settings
from django.db import DatabaseError, InterfaceError, connections
from django.http import HttpRequest, HttpResponse
from django.template.loader import render_to_string
from django.template.response import SimpleTemplateResponse

from django_leasequeue.conf import get_conf
from django_leasequeue.core.dialect import family_of

__all__ = ["OUTAGES", "answering", "why"]

OUTAGES = (DatabaseError, InterfaceError)
_log = logging.getLogger("django_leasequeue.admin")


def answering(view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    """Return the view; where the database's errors come out of it, it answers 503 and says why.

    Under DEBUG they come out as before.
    """

    @wraps(view)
    def answered(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        try:
            response = view(request, *args, **kwargs)
        except OUTAGES as error:
            return _answer(request, error)
        if isinstance(response, SimpleTemplateResponse) and not response.is_rendered:
            _guard(request, response)
        return response

    return answered


def why(error: Exception) -> str:
    """Return the class and the server's code of an error: its text may hold what is in a row."""
    code = family_of(connections[get_conf().DATABASE]).code_of(error)
    return type(error).__name__ if code is None else f"{type(error).__name__} {code}"


def _guard(request: HttpRequest, response: SimpleTemplateResponse) -> None:
    """Let a page that is rendered later, and asks the database then, answer in the same way."""
    rendered = response.render

    def guarded() -> HttpResponse:
        try:
            return rendered()
        except OUTAGES as error:
            return _answer(request, error)

    response.render = guarded  # type: ignore[method-assign, assignment]  # Django calls just this


def _answer(request: HttpRequest, error: Exception) -> HttpResponse:
    if settings.DEBUG:
        raise error
    said = why(error)
    _log.error("%s %s: %s", request.method, request.path, said)
    if not hasattr(getattr(request, "session", None), "_session_cache"):
        # It could not be loaded, and the middleware would ask for it again on the way out.
        vars(request).pop("session", None)
    # Without the request: its user and its session may be in the database that is away, and so may
    # be what a project's own templates and context processors ask for.
    page = render_to_string("admin/leasequeue/outage.html", {"why": said})
    return HttpResponse(page, status=503)
