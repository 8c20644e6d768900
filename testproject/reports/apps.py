"""The reports app: orders in, monthly reports out, made by jobs."""

from __future__ import annotations

from django.apps import AppConfig

from django_leasequeue.signals import jobs_claimed


class ReportsConfig(AppConfig):
    """Connects the test-only pause between a claim and the worker's stop check."""

    name = "reports"

    def ready(self) -> None:
        from reports.fixtures import pause_after_claim

        jobs_claimed.connect(pause_after_claim, dispatch_uid="reports_pause_after_claim")
