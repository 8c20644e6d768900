"""The health view: a web process says whether the queue's database can be worked with.

It says no more than that to whoever asks, so that a load balancer needs no login.
"""

from __future__ import annotations

from http import HTTPStatus

from django.http import HttpRequest, HttpResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from django_leasequeue.conf import get_conf
from django_leasequeue.runtime.soundness import database_problem

__all__ = ["health"]


@require_safe
@never_cache
def health(request: HttpRequest, max_oldest: float | None = None) -> HttpResponse:
    """Answer 200 "ok", or 503 with the reason in a line of text.

    `max_oldest` seconds, given by the URL pattern's extra arguments, also bound how long a due
    job may have waited.
    """
    problem = database_problem(get_conf().DATABASE, max_oldest=max_oldest)
    status = HTTPStatus.SERVICE_UNAVAILABLE if problem else HTTPStatus.OK
    return HttpResponse(f"{problem or 'ok'}\n", status=status, content_type="text/plain")
