"""Pages of the queue's own inside an admin site: their context, their URLs, their log entries."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import django
from django.contrib import admin
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.functional import Promise

from django_leasequeue.admin.base import outside_atomic_requests

__all__ = ["address_of", "page", "url_of"]


def page(
    admin_page: admin.ModelAdmin[Any],
    request: HttpRequest,
    template: str,
    title: str | Promise,
    context: dict[str, Any],
    *,
    status: int = 200,
) -> TemplateResponse:
    """Return a page with the site's header, the names of the app and the model, and `title`."""
    site = admin_page.admin_site
    request.current_app = site.name
    shared = {
        **site.each_context(request),
        "title": title,
        "opts": admin_page.opts,
        "media": admin_page.media,
        # Each has its own markup, and styles that one alone.
        "crumbs_are_listed": django.VERSION >= (6, 1),
        "list_url": url_of(admin_page, f"{admin_page.opts.model_name}_changelist"),
    }
    return TemplateResponse(
        request, f"admin/leasequeue/{template}", {**shared, **context}, status=status
    )


def address_of(
    admin_page: admin.ModelAdmin[Any], address: str, view: Callable[..., HttpResponse], name: str
) -> URLPattern:
    """Return one more address of a model's pages, for people who may enter the admin site.

    What it does commits by itself, whatever ATOMIC_REQUESTS say.
    """
    wrapped = outside_atomic_requests(admin_page.admin_site.admin_view(view))
    model = admin_page.opts.model_name
    found: URLPattern = path(address, wrapped, name=f"leasequeue_{model}_{name}")
    return found


def url_of(admin_page: admin.ModelAdmin[Any], name: str, *args: object) -> str:
    """Return the address of one of the app's views on the same site."""
    site = admin_page.admin_site.name
    return reverse(f"admin:leasequeue_{name}", args=args, current_app=site)
