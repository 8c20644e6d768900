"""The dashboard for the template of the app's index, which belongs to the admin site."""

from __future__ import annotations

from typing import Any

from django import template
from django.template import Context

__all__ = ["register"]

register = template.Library()


@register.simple_tag(takes_context=True)
def leasequeue_dashboard(context: Context) -> Any:
    """Return what the dashboard shows, None for a user who may not see it."""
    # Django imports every library there is, in a project without its admin too.
    from django_leasequeue.admin.dashboard import dashboard

    request = context["request"]
    return dashboard(request, request.current_app)
