"""`manage.py enqueue_report TENANT YYYY-MM`: ask for a report; asking twice is the same job."""

from __future__ import annotations

import os
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from django_leasequeue import enqueue
from reports.payloads import is_month, is_tenant, report_key


class Command(BaseCommand):
    """Enqueues `report.generate` and prints the job's id alone; exit code 64 for wrong usage."""

    help = "Enqueue a tenant's monthly report and print the job's id; twice prints the same id."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("tenant", metavar="TENANT", help="1 to 100 letters, digits, _ or -")
        parser.add_argument("month", metavar="YYYY-MM", help="the month, in UTC")
        parser.add_argument(
            "--database",
            default=settings.LEASEQUEUE["DATABASE"],
            choices=tuple(settings.DATABASES),
            help="alias of the queue's database",
        )

    def run_from_argv(self, argv: list[str]) -> None:
        try:
            super().run_from_argv(argv)
        except SystemExit as exit_:
            # argparse ends with 2 for wrong usage.
            raise SystemExit(os.EX_USAGE if exit_.code == 2 else exit_.code) from None

    def handle(self, *args: Any, tenant: str, month: str, database: str, **options: Any) -> None:
        if not is_tenant(tenant):
            raise CommandError(
                "Invalid tenant ID: use 1 to 100 ASCII letters, digits, _ or -.",
                returncode=os.EX_USAGE,
            )
        if not is_month(month):
            raise CommandError("Month must use YYYY-MM, like 2042-01.", returncode=os.EX_USAGE)
        payload = {"tenant_id": tenant, "report_month": month}
        key = report_key(tenant, month)
        job = enqueue("report.generate", payload, queue="reports", key=key, using=database)
        self.stdout.write(str(job.id))
