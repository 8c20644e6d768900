"""The dashboard for the template of the app's index, which belongs to the admin site."""

from __future__ import annotations

from typing import Any

from django import template
from django.template import Context

__all__ = ["register"]

register = template.Library()


@register.simple_tag(takes_context=True)
def leasequeue_dashboard(context: Context) -> Any:
    """Return what the dashboard shows, None for a user who may not see it; or why there is none."""
    # Django imports every library there is, in a project without its admin too.
    from django_leasequeue.admin.dashboard import dashboard
    from django_leasequeue.admin.outages import OUTAGES, why

    request = context["request"]
    try:
        return dashboard(request, request.current_app)
    except OUTAGES as error:
        return {"outage": why(error)}
