"""The queue's views for a project's URLconf: `path("queue/", include("django_leasequeue.urls"))`.

The admin is elsewhere: it belongs to the project's admin site.
"""

from __future__ import annotations

from django.urls import path

from django_leasequeue.health import health
from django_leasequeue.metrics.views import metrics

app_name = "leasequeue"

urlpatterns = [
    path("health/", health, name="health"),
    path("metrics/", metrics, name="metrics"),
]
