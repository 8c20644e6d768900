"""The metrics view: a web process shows the gauges of the database, and no counters."""

from __future__ import annotations

import hmac
import threading
from http import HTTPStatus

from django.http import HttpRequest, HttpResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from django_leasequeue.conf import get_conf
from django_leasequeue.metrics.exposition import database_families, expose, require_client
from django_leasequeue.metrics.gauges import GaugeSource

__all__ = ["metrics"]

_sources: dict[str, GaugeSource] = {}
_lock = threading.Lock()


@require_safe
@never_cache
def metrics(request: HttpRequest) -> HttpResponse:
    """Answer with the gauges, to whoever may see jobs; 403 to all others.

    That is a user with the permission `leasequeue.view_job`, or `Authorization: Bearer` and the
    setting METRICS_TOKEN. Raises ImproperlyConfigured without prometheus-client.
    """
    if not (_has_token(request) or _may_view(request)):
        return HttpResponse("Forbidden\n", status=HTTPStatus.FORBIDDEN, content_type="text/plain")
    require_client()
    reading = _source(get_conf().DATABASE).read()
    body, content_type = expose(
        lambda: database_families([reading]), request.headers.get("Accept", "")
    )
    return HttpResponse(body, content_type=content_type)


def _source(alias: str) -> GaugeSource:
    with _lock:
        return _sources.setdefault(alias, GaugeSource(alias))


def _has_token(request: HttpRequest) -> bool:
    token = get_conf().METRICS_TOKEN
    scheme, _, given = request.headers.get("Authorization", "").partition(" ")
    if not token or scheme.lower() != "bearer":
        return False
    return hmac.compare_digest(given.strip().encode(), token.encode())


def _may_view(request: HttpRequest) -> bool:
    user = getattr(request, "user", None)
    return user is not None and user.is_active and user.has_perm("leasequeue.view_job")
