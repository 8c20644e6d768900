"""`manage.py demo`: orders, jobs, a worker and its results, on an SQLite file made for it."""

from __future__ import annotations

import os
import subprocess
import sys
from io import StringIO
from pathlib import Path
from typing import Any
from urllib.parse import quote

from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError
from django.db import connection

from django_leasequeue import enqueue
from django_leasequeue.models import Job, JobAttempt
from reports.models import GeneratedReport
from reports.tables import table

MANAGE = settings.BASE_DIR / "manage.py"
FILE = settings.BASE_DIR / "demo.sqlite3"
TENANTS = ("acme", "globex", "initech", "umbrella")
MONTH = "2042-01"


class Command(BaseCommand):
    """Runs the whole demonstration on a fresh database; other databases are not touched."""

    help = "Show the queue at work on a fresh SQLite file: enqueue, drain, results."
    # Checks look at the database of the settings, which is not the one to be shown.
    requires_system_checks = ()

    def handle(self, *args: Any, **options: Any) -> None:
        if connection.settings_dict["NAME"] != str(FILE):
            sys.exit(_run("demo", DATABASE_URL=_url(FILE)))
        self._prepare()
        self._enqueue()
        self._drain()
        self._show()
        self.stdout.write("\nTo look at it all in the admin (user admin, password admin):")
        self.stdout.write(_admin_line())

    def _prepare(self) -> None:
        connection.close()
        for suffix in ("", "-wal", "-shm"):
            FILE.with_name(FILE.name + suffix).unlink(missing_ok=True)
        call_command("migrate", verbosity=0)
        get_user_model().objects.create_superuser("admin", "admin@example.invalid", "admin")
        self.stdout.write("Importing the sample orders:")
        call_command("import_orders", stdout=self.stdout)

    def _enqueue(self) -> None:
        rows = [
            (tenant, MONTH, _enqueue_report(tenant), _enqueue_report(tenant)) for tenant in TENANTS
        ]
        headings = ("tenant", "month", "job", "asked again")
        self.stdout.write(f"\n{table('Enqueued, each twice', headings, rows)}\n\n")
        transient = enqueue(
            "report.generate",
            {"tenant_id": "acme", "report_month": "2042-02", "test_transient_until_attempt": 2},
            queue="reports",
        )
        poison = enqueue("unsupported.fixture", {"tenant_id": "acme"}, queue="reports")
        self.stdout.write(f"Job {transient.id} will fail twice on purpose and be tried again.")
        self.stdout.write(f"Job {poison.id} has a type that no handler has: a dead letter.\n\n")

    def _drain(self) -> None:
        self.stdout.write("Running: manage.py runworker --queues reports --drain --log-format text")
        self.stdout.flush()
        worker = ("runworker", "--queues", "reports", "--drain", "--log-format", "text")
        if code := _run(*worker, WORKER_ENABLE_TEST_FIXTURES="1"):
            raise CommandError(f"The worker ended with exit code {code}.")

    def _show(self) -> None:
        for shown in (_reports(), _attempts(), _dead_letters()):
            self.stdout.write(f"\n{shown}\n")


def _run(*arguments: str, **environment: str) -> int:
    command = [sys.executable, str(MANAGE), *arguments]
    environ = {**os.environ, **environment}
    return subprocess.run(command, env=environ, check=False).returncode  # noqa: S603 - our own


def _enqueue_report(tenant: str) -> int:
    out = StringIO()
    call_command("enqueue_report", tenant, MONTH, stdout=out)
    return int(out.getvalue())


def _reports() -> str:
    return table(
        "Reports",
        ("tenant", "month", "orders", "revenue", "days", "best product"),
        (
            (
                report.tenant_id,
                report.report_month,
                report.result_json["orders"],
                report.result_json["revenue"].rjust(10),
                len(report.result_json["per_day"]),
                report.result_json["top_products"][0]["product"],
            )
            for report in GeneratedReport.objects.order_by("tenant_id", "report_month")
        ),
    )


def _attempts() -> str:
    return table(
        "Attempts",
        ("job", "type", "attempt", "outcome", "error"),
        (
            (
                attempt.job_id,
                attempt.job.job_type,
                attempt.number,
                attempt.outcome,
                attempt.error_text or attempt.error_class,
            )
            for attempt in JobAttempt.objects.select_related("job").order_by("job_id", "number")
        ),
    )


def _dead_letters() -> str:
    return table(
        "Dead letters",
        ("job", "type", "attempts", "last error"),
        Job.objects.filter(status="dead")
        .order_by("id")
        .values_list("id", "job_type", "attempts", "last_error"),
    )


def _url(path: Path | str) -> str:
    return f"sqlite:///{quote(str(path))}"


def _near(path: str | Path) -> str:
    """Return a path as one would type it here: relative where it lies below this folder."""
    relative = os.path.relpath(path)
    return str(path) if relative.startswith("..") else relative


def _admin_line() -> str:
    python, manage, file = _near(sys.executable), _near(MANAGE), _near(FILE)
    return f"DJANGO_DEBUG=1 DATABASE_URL={_url(file)} {python} {manage} runserver"
