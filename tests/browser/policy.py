"""A content security policy as strict as the docs promise."""

from __future__ import annotations

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse

HEADER = "default-src 'self'; frame-ancestors 'none'; form-action 'self'"


class Policy:
    """Sends the policy with every page."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self._get_response(request)
        response["Content-Security-Policy"] = HEADER
        return response
