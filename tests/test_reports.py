"""The reports project: figures, import, commands, fixtures and settings."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from decimal import Decimal
from io import StringIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import IntegrityError
from django.utils import timezone

from django_leasequeue import Reject
from django_leasequeue.models import Job
from django_leasequeue.signals import jobs_claimed
from reports import fixtures, sample
from reports.aggregation import monthly_report
from reports.jobs import generate_report, report_backoff
from reports.management.commands import enqueue_report, import_orders
from reports.models import GeneratedReport, Order
from reports.orders_csv import InvalidOrders, parse_orders
from reports.payloads import is_month, is_tenant, month_bounds
from reports.tables import table
from testproject.database import database_from_environment, database_from_url
from testproject.environment import flag, seconds, words

BAD_TENANTS: list[object] = [
    "",
    "a" * 101,
    "acme\n",
    "acmé",
    "a b",
    "a/b",
    "١٢",
    None,
    7,
    True,
    ["acme"],
]
BAD_MONTHS: list[object] = [
    *(
        "",
        "2042-13",
        "2042-00",
        "2042-1",
        "2042-01\n",
        " 2042-01",
        "2042/01",
        "٢٠٤٢-01",
        "2042-0\uff11",
    ),
    *("0000-01", "12042-01", None, 204201, True, {}),
]
HEADER = ",".join(sample.HEADER)


def order(
    *,
    tenant: str = "acme",
    number: str = "1",
    product: str = "Pen",
    quantity: int = 1,
    price: str = "1.00",
    at: str = "2042-01-15",
) -> Order:
    moment = datetime.fromisoformat(at)
    return Order(
        tenant_id=tenant,
        order_number=number,
        product=product,
        quantity=quantity,
        unit_price=Decimal(price),
        ordered_at=moment if moment.tzinfo else moment.replace(tzinfo=UTC),
    )


class FakeContext:
    """What the handler needs of a context, without a job."""

    idempotency_key = "k" * 64
    using = "default"

    def __init__(self, attempt: int = 1) -> None:
        self.attempt = attempt
        self.completed: list[dict[str, Any]] = []

    @contextmanager
    def complete(self, result: dict[str, Any]) -> Iterator[None]:
        assert not self.completed
        yield
        self.completed.append(result)


# ---------------------------------------------------------------------------------------- figures


@pytest.fixture
def january(db):
    Order.objects.bulk_create(
        [
            order(number="0", at="2041-12-31T23:59:59.999999"),
            order(number="1", product="Pen", quantity=2, price="1.10", at="2042-01-01T00:00:00"),
            order(number="2", product="Lamp", quantity=1, price="39.90", at="2042-01-01T10:00:00"),
            order(
                number="3", product="Pen", quantity=3, price="1.10", at="2042-01-31T23:59:59.999999"
            ),
            order(number="4", at="2042-02-01T00:00:00"),
            order(tenant="Acme", number="1", price="500.00"),
            order(tenant="acme2", number="1", price="500.00"),
        ]
    )


JANUARY = {
    "tenant_id": "acme",
    "report_month": "2042-01",
    "state": "generated",
    "orders": 3,
    "units": 6,
    "revenue": "45.40",
    "per_day": [
        {"day": "2042-01-01", "orders": 2, "revenue": "42.10"},
        {"day": "2042-01-31", "orders": 1, "revenue": "3.30"},
    ],
    "top_products": [
        {"product": "Lamp", "units": 1, "revenue": "39.90"},
        {"product": "Pen", "units": 5, "revenue": "5.50"},
    ],
}


@pytest.mark.parametrize("zone", ["UTC", "Pacific/Auckland", "America/New_York"])
def test_report_is_the_utc_month_in_every_zone(january, zone):
    with timezone.override(zone):
        assert monthly_report("acme", "2042-01") == JANUARY


def test_report_keeps_cents_exact(db):
    Order.objects.bulk_create([order(number=str(n), price="0.10") for n in range(1003)])
    report = monthly_report("acme", "2042-01")
    assert report["revenue"] == "100.30"
    assert report["per_day"] == [{"day": "2042-01-15", "orders": 1003, "revenue": "100.30"}]


def test_top_products_are_five_by_revenue_then_name(db):
    prices = {"A": "1.00", "B": "3.00", "C": "2.00", "D": "1.00", "E": "9.00", "F": "1.00"}
    Order.objects.bulk_create([order(number=p, product=p, price=prices[p]) for p in prices])
    top = monthly_report("acme", "2042-01")["top_products"]
    assert [entry["product"] for entry in top] == ["E", "B", "C", "A", "D"]


@pytest.mark.parametrize("month", ["2042-03", "0001-01", "1999-02", "9999-12"])
def test_report_of_a_month_without_orders_is_zeros(january, month):
    report = monthly_report("acme", month)
    assert (report["orders"], report["units"], report["revenue"]) == (0, 0, "0.00")
    assert report["per_day"] == report["top_products"] == []


def test_report_of_the_sample_equals_a_sum_in_python(db):
    call_command("import_orders", stdout=StringIO())
    days: dict[tuple[str, str], Decimal] = defaultdict(Decimal)
    months: dict[tuple[str, str], int] = defaultdict(int)
    for tenant, _, _, quantity, price, ordered_at in sample.rows():
        moment = datetime.fromisoformat(ordered_at).astimezone(UTC)
        days[tenant, f"{moment:%Y-%m-%d}"] += int(quantity) * Decimal(price)
        months[tenant, f"{moment:%Y-%m}"] += 1
    reports = {(t, m): monthly_report(t, m) for t, m in months}
    assert {key: report["orders"] for key, report in reports.items()} == months
    shown = {(t, d["day"]): d["revenue"] for (t, _), r in reports.items() for d in r["per_day"]}
    assert shown == {key: str(amount) for key, amount in days.items()}


@pytest.mark.parametrize(
    ("month", "first", "after"),
    [
        ("2042-01", (2042, 1, 1), (2042, 2, 1)),
        ("2042-12", (2042, 12, 1), (2043, 1, 1)),
        ("2044-02", (2044, 2, 1), (2044, 3, 1)),
        ("0001-01", (1, 1, 1), (1, 2, 1)),
    ],
)
def test_month_bounds(month, first, after):
    bounds = month_bounds(month)
    assert [moment.timetuple()[:6] for moment in bounds] == [(*first, 0, 0, 0), (*after, 0, 0, 0)]
    assert {moment.tzinfo for moment in bounds} == {UTC}


# ---------------------------------------------------------------------------------------- payload


@pytest.mark.parametrize("tenant", BAD_TENANTS)
def test_bad_tenants(tenant):
    assert not is_tenant(tenant)


@pytest.mark.parametrize("month", BAD_MONTHS)
def test_bad_months(month):
    assert not is_month(month)


@pytest.mark.parametrize("tenant", ["a", "A" * 100, "acme_eu-1", "-", "007"])
def test_good_tenants(tenant):
    assert is_tenant(tenant)


@pytest.mark.parametrize("month", ["2042-01", "2042-12", "0001-01", "9999-12"])
def test_good_months(month):
    assert is_month(month)


# ---------------------------------------------------------------------------------------- handler


def test_handler_completes_with_the_report_and_one_row(january):
    context = FakeContext()
    generate_report(context, tenant_id="acme", report_month="2042-01", unknown={"x": 1})
    assert context.completed == [JANUARY]
    row = GeneratedReport.objects.get()
    assert (row.idempotency_key, row.tenant_id, row.report_month) == ("k" * 64, "acme", "2042-01")
    assert row.result_json == JANUARY
    assert abs((timezone.now() - row.created_at).total_seconds()) < 60 if settings.USE_TZ else True


def test_handler_keeps_the_report_of_an_earlier_run(january):
    generate_report(FakeContext(), tenant_id="acme", report_month="2042-01")
    Order.objects.all().delete()
    generate_report(FakeContext(2), tenant_id="acme", report_month="2042-01")
    assert GeneratedReport.objects.get().result_json == JANUARY


@pytest.mark.parametrize(
    "payload",
    [
        {},
        {"tenant_id": "acme"},
        {"report_month": "2042-01"},
        *({"tenant_id": tenant, "report_month": "2042-01"} for tenant in BAD_TENANTS),
        *({"tenant_id": "acme", "report_month": month} for month in BAD_MONTHS),
    ],
)
def test_handler_rejects_a_malformed_payload_before_any_query(payload):
    context = FakeContext()
    with pytest.raises(Reject, match=r"^Malformed job payload$"):
        generate_report(context, **payload)
    assert context.completed == []


@pytest.mark.parametrize("attempt", [1, 2, 5, 8, 9, 100, 100_000])
def test_backoff_bounds(attempt):
    context: Any = FakeContext(attempt)
    delays = {report_backoff(ValueError(), context) for _ in range(300)}
    base = 2 ** min(attempt, 8)
    assert delays <= {base, base + 1, base + 2, base + 3}
    assert len(delays) > 1
    assert max(delays) <= 300


# --------------------------------------------------------------------------------------- fixtures


@pytest.fixture
def sleeps(monkeypatch):
    """Replace the fixtures' clock: sleeping is written down and takes no time."""
    slept: list[float] = []
    clock = SimpleNamespace(sleep=slept.append, monotonic=lambda: sum(slept))
    monkeypatch.setattr(fixtures, "time", clock)
    return slept


@pytest.fixture
def fixtures_on(monkeypatch):
    monkeypatch.setenv("WORKER_ENABLE_TEST_FIXTURES", "1")


@pytest.mark.parametrize("value", [None, "", "0", "true", "11"])
def test_fixtures_are_ignored_unless_switched_on(january, monkeypatch, sleeps, value):
    monkeypatch.delenv("WORKER_ENABLE_TEST_FIXTURES", raising=False)
    if value is not None:
        monkeypatch.setenv("WORKER_ENABLE_TEST_FIXTURES", value)
    context = FakeContext()
    asked = {"test_pause": True, "test_transient_until_attempt": 9}
    generate_report(context, tenant_id="acme", report_month="2042-01", **asked)
    assert context.completed == [JANUARY]
    assert sleeps == []


def test_transient_fixture_fails_up_to_its_attempt(january, fixtures_on):
    payload = {"tenant_id": "acme", "report_month": "2042-01", "test_transient_until_attempt": 2}
    for attempt in (1, 2):
        with pytest.raises(RuntimeError, match=r"^Synthetic transient test failure$"):
            generate_report(FakeContext(attempt), **payload)
    assert not GeneratedReport.objects.exists()
    context = FakeContext(3)
    generate_report(context, **payload)
    assert context.completed == [JANUARY]


@pytest.mark.parametrize("until", [0, -1, None, "2", [], 0.5])
def test_transient_fixture_without_a_number_does_nothing(fixtures_on, until):
    fixtures.apply_fixtures(1, {"test_transient_until_attempt": until})


def test_pause_fixture_waits_thirty_seconds(fixtures_on, sleeps):
    fixtures.apply_fixtures(1, {"test_pause": True})
    assert sum(sleeps) == pytest.approx(30)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("1", [0.001]),
        ("10000", [10]),
        *((value, []) for value in ("", "0", "10001", "-5", "ten", "1.5", "٣")),
    ],
)
def test_pause_after_claim(monkeypatch, sleeps, value, expected):
    monkeypatch.setenv("WORKER_TEST_POST_CLAIM_PAUSE_MS", value)
    jobs_claimed.send(sender=None, worker="w", jobs=[])
    assert sleeps == expected


# ----------------------------------------------------------------------------------------- import


def lines(*rows: str) -> list[str]:
    return [HEADER, *rows]


GOOD = "acme,1,Pen,2,1.10,2042-01-31T18:00:00+01:00"


def test_import_twice_adds_nothing_and_changes_nothing(db):
    call_command("import_orders", stdout=(out := StringIO()))
    before = list(Order.objects.order_by("id").values())
    call_command("import_orders", stdout=out)
    count = len(before)
    assert count > 2000
    assert out.getvalue().splitlines() == [
        f"{count} orders added, 0 were there already.",
        f"0 orders added, {count} were there already.",
    ]
    assert list(Order.objects.order_by("id").values()) == before


def test_sample_is_what_its_script_makes():
    shipped = import_orders.SAMPLE.read_bytes()
    assert shipped == sample.as_csv().encode()
    assert len(shipped) < 300_000


def test_import_brings_times_to_utc_and_takes_the_files_values(db, tmp_path):
    file = tmp_path / "orders.csv"
    file.write_text(
        "\ufeff" + "\r\n".join(lines(GOOD, 'ACME,1,"Pen, ""blue""",1,0.00,2042-02-01T00:00:00Z'))
    )
    call_command("import_orders", file, stdout=StringIO())
    file.write_text("\n".join(lines(GOOD.replace(",2,1.10,", ",3,1.15,"))))
    call_command("import_orders", file, stdout=(out := StringIO()))
    assert out.getvalue() == "0 orders added, 1 were there already.\n"
    first, other = Order.objects.order_by("id")
    assert (first.quantity, first.unit_price) == (3, Decimal("1.15"))
    assert first.ordered_at == datetime(2042, 1, 31, 17, tzinfo=UTC)
    assert (other.tenant_id, other.product) == ("ACME", 'Pen, "blue"')


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        ("acme,2,Pen,1,1.00", "line 3: has 5 values instead of 6"),
        (GOOD + ",x", "line 3: has 7 values instead of 6"),
        ("ac me,2,Pen,1,1.00,2042-01-01T00:00:00Z", "line 3: tenant_id must be"),
        ("acme,,Pen,1,1.00,2042-01-01T00:00:00Z", "line 3: order_number must be"),
        ("acme,2, ,1,1.00,2042-01-01T00:00:00Z", "line 3: product must be"),
        ("acme,2,Pen,0,1.00,2042-01-01T00:00:00Z", "line 3: quantity must be"),
        ("acme,2,Pen,٣,1.00,2042-01-01T00:00:00Z", "line 3: quantity must be"),
        ("acme,2,Pen,1_0,1.00,2042-01-01T00:00:00Z", "line 3: quantity must be"),
        ("acme,2,Pen,1,1.005,2042-01-01T00:00:00Z", "line 3: unit_price must be"),
        ("acme,2,Pen,1,-1.00,2042-01-01T00:00:00Z", "line 3: unit_price must be"),
        ("acme,2,Pen,1,NaN,2042-01-01T00:00:00Z", "line 3: unit_price must be"),
        ("acme,2,Pen,1,1.00,2042-01-01T00:00:00", "line 3: ordered_at must be"),
        ("acme,2,Pen,1,1.00,2042-02-30T00:00:00Z", "line 3: ordered_at must be"),
        ("acme,2,Pen,1,1.00,0001-01-01T00:00:00+01:00", "line 3: ordered_at must be"),
        (GOOD, "line 3: acme 1 is already on line 2"),
        ('acme,2,"Pen,1,1.00,2042-01-01T00:00:00Z', "line 3: unexpected end of data"),
    ],
)
def test_import_refuses_the_whole_file_for_one_bad_line(db, tmp_path, row, problem):
    file = tmp_path / "orders.csv"
    file.write_text("\n".join(lines(GOOD, row)))
    with pytest.raises(CommandError) as caught:
        call_command("import_orders", file)
    assert f"Nothing was imported from {file}:\n{problem}" in str(caught.value)
    assert not Order.objects.exists()


def test_import_tells_ten_problems_and_the_number_of_the_rest():
    with pytest.raises(InvalidOrders) as caught:
        parse_orders(lines(*["acme,x"] * 12))
    told = str(caught.value).splitlines()
    assert told[0].startswith("line 2:")
    assert told[10:] == ["and 2 more"]


@pytest.mark.parametrize("text", ["", "tenant_id,product\n", GOOD])
def test_import_wants_its_header(text):
    with pytest.raises(InvalidOrders, match=r"^line 1: the columns must be tenant_id,"):
        parse_orders(text.splitlines())


def test_import_of_a_file_that_cannot_be_read(db, tmp_path):
    with pytest.raises(CommandError, match="No such file"):
        call_command("import_orders", tmp_path / "none.csv")
    (tmp_path / "latin.csv").write_bytes("Café".encode("latin-1"))
    with pytest.raises(CommandError, match="not UTF-8"):
        call_command("import_orders", tmp_path / "latin.csv")


def test_import_that_the_database_refuses_leaves_nothing(db, monkeypatch):
    monkeypatch.setattr(import_orders, "BATCH", 1)
    broken = order(number="2")
    broken.product = None
    with pytest.raises(IntegrityError):
        import_orders.save_orders([order(number="1"), broken])
    assert not Order.objects.exists()


# --------------------------------------------------------------------------------- enqueue_report


def enqueue(tenant: str, month: str, **options: str) -> str:
    call_command("enqueue_report", tenant, month, stdout=(out := StringIO()), **options)
    return out.getvalue()


def test_enqueue_report_prints_the_same_id_alone(db):
    first = enqueue("acme", "2042-01")
    assert first == f"{Job.objects.get().pk}\n"
    assert enqueue("acme", "2042-01", database="default") == first
    assert len({first, enqueue("acme", "2042-02"), enqueue("Acme", "2042-01")}) == 3
    job = Job.objects.get(pk=int(first))
    assert (job.queue_name, job.job_type, job.status) == ("reports", "report.generate", "ready")
    assert job.payload == {"tenant_id": "acme", "report_month": "2042-01"}
    # printf monthly-report:acme:2042-01 | sha256sum
    assert job.idempotency_key == "2209010e18decfecb2a5314719571b83c97c17f8b86523a3f7610a89a9bac94f"


@pytest.mark.parametrize(
    ("tenant", "month", "message"),
    [
        *(
            (tenant, "2042-01", "Invalid tenant ID")
            for tenant in BAD_TENANTS
            if isinstance(tenant, str)
        ),
        *(
            ("acme", month, "Month must use YYYY-MM")
            for month in BAD_MONTHS
            if isinstance(month, str)
        ),
    ],
)
def test_enqueue_report_refuses_bad_arguments_and_writes_nothing(db, tenant, month, message):
    with pytest.raises(CommandError, match=message) as caught:
        enqueue(tenant, month)
    assert caught.value.returncode == 64
    assert not Job.objects.exists()


@pytest.mark.parametrize(
    "arguments", [[], ["acme"], ["acme", "2042-01", "more"], ["-x", "2042-01"]]
)
def test_enqueue_report_ends_with_64_for_wrong_usage(arguments, capsys):
    with pytest.raises(SystemExit) as caught:
        enqueue_report.Command().run_from_argv(["manage.py", "enqueue_report", *arguments])
    assert caught.value.code == 64
    assert "usage: manage.py enqueue_report" in capsys.readouterr().err


def test_enqueue_report_help_ends_with_0(capsys):
    with pytest.raises(SystemExit) as caught:
        enqueue_report.Command().run_from_argv(["manage.py", "enqueue_report", "--help"])
    assert caught.value.code == 0
    assert "TENANT" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("acme", "2042-13"), "Month must use YYYY-MM, like 2042-01."),
        (("ac me", "2042-01"), "Invalid tenant ID: use 1 to 100 ASCII letters, digits, _ or -."),
    ],
)
def test_enqueue_report_process_ends_with_64_and_says_why(queue_db, manage, arguments, message):
    ended = manage("enqueue_report", *arguments)
    assert (ended.returncode, ended.stdout) == (64, "")
    assert ended.stderr == f"CommandError: {message}\n"
    assert not Job.objects.exists()


def test_reports_from_commands_and_a_worker(queue_db, manage, worker_process):
    assert manage("import_orders").returncode == 0
    asked = [manage("enqueue_report", tenant, "2042-01") for tenant in ("acme", "globex", "acme")]
    assert [ended.returncode for ended in asked] == [0, 0, 0]
    first, second, again = (int(ended.stdout) for ended in asked)
    assert first == again != second
    worker = worker_process("--queues", "reports", "--drain")
    assert worker.wait() == 0
    jobs = {job.idempotency_key: job for job in Job.objects.all()}
    assert {(job.pk, job.status) for job in jobs.values()} == {(first, "done"), (second, "done")}
    reports = list(GeneratedReport.objects.all())
    assert {report.tenant_id for report in reports} == {"acme", "globex"}
    for report in reports:
        assert report.result_json == jobs[report.idempotency_key].result
        assert report.result_json == monthly_report(report.tenant_id, "2042-01")
        assert report.result_json["orders"] > 50


# --------------------------------------------------------------------------------------- settings


def test_url_of_a_server_with_every_part_encoded():
    given = database_from_url("mariadb://us%3Aer:p%40ss%2F%25%23%3F@db.example:3307/na%20me")
    assert given["ENGINE"] == "django.db.backends.mysql"
    assert (given["HOST"], given["PORT"], given["NAME"]) == ("db.example", "3307", "na me")
    assert (given["USER"], given["PASSWORD"]) == ("us:er", "p@ss/%#?")
    assert given["OPTIONS"]["charset"] == "utf8mb4"
    assert "STRICT_TRANS_TABLES" in given["OPTIONS"]["init_command"]


@pytest.mark.parametrize(
    ("url", "host", "port"),
    [
        ("postgres://u:p@/name", "127.0.0.1", "5432"),
        ("postgresql://u:p@[::1]:6000/name", "::1", "6000"),
        ("mysql://u:p@%2Frun%2FMy.sock/name", "/run/My.sock", "3306"),
    ],
)
def test_url_hosts(url, host, port):
    given = database_from_url(url)
    assert (given["HOST"], given["PORT"]) == (host, port)


def test_url_options_are_typed_and_bounded():
    options = database_from_url("postgres://u:p@h/n?lock_timeout=7&sslmode=require")["OPTIONS"]
    assert options["options"] == "-c lock_timeout=7s"
    assert options["sslmode"] == "require"


def test_sqlite_is_a_file_in_wal_mode_with_immediate_transactions(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    given = database_from_url("sqlite:///some%20where/q.db")
    assert given["NAME"] == str(tmp_path / "some where/q.db")
    assert given["TEST"]["NAME"] == str(tmp_path / "some where/test_q.db")
    assert given["OPTIONS"]["transaction_mode"] == "IMMEDIATE"
    assert "WAL" in given["OPTIONS"]["init_command"]
    assert database_from_url("sqlite:////tmp/q.db")["NAME"] == "/tmp/q.db"
    assert database_from_environment({}, Path("/tmp/d.db"))["NAME"] == "/tmp/d.db"


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("mysql://u:secret/1@h/n", "cannot be read"),
        ("mysql://u:secret@h:99999/n", "cannot be read"),
        ("mysql://u:secret#1@h/n", "write it as %23"),
        ("mysql://u:secret@h/", "one database name"),
        ("mysql://u:secret@h/a/b", "one database name"),
        ("oracle://u:secret@h/n", "names 'oracle'"),
        ("just words", "names ''"),
        ("mysql://u:secret@h/n?host=x", "unknown option host"),
        ("mysql://u:secret@h/n?lock_timeout=0", "lock_timeout must be 1 to 3600"),
        ("mysql://u:secret@h/n?lock_timeout=1&lock_timeout=2", "an option twice"),
        ("mysql://u:secret@h/n?lock_timeout", "options as"),
        ("sqlite://:memory:", "must name an SQLite file"),
        ("sqlite:///:memory:", "must name an SQLite file"),
        ("sqlite://", "must name an SQLite file"),
    ],
)
def test_bad_urls_are_explained_without_the_password(url, message):
    with pytest.raises(ImproperlyConfigured) as caught:
        database_from_url(url)
    assert message in str(caught.value)
    assert "secret" not in str(caught.value)


def test_parts_of_the_reference_worker():
    given = database_from_environment({"DB_PASS": "p@ss"}, Path("unused"))
    assert (given["HOST"], given["PORT"]) == ("127.0.0.1", "3306")
    assert (given["NAME"], given["USER"]) == ("report_queue", "queue_worker")
    assert given["PASSWORD"] == "p@ss"
    environ = {
        "DB_ENGINE": "postgres",
        "DB_HOST": "h",
        "DB_NAME": "n",
        "DB_USER": "u",
        "DB_PASS": "p",
    }
    given = database_from_environment(environ, Path("unused"))
    assert (given["ENGINE"], given["PORT"]) == ("django.db.backends.postgresql", "5432")


@pytest.mark.parametrize(
    ("environ", "message"),
    [
        ({"DB_HOST": "h"}, "DB_PASS is required"),
        ({"DB_PASS": ""}, "DB_PASS is required"),
        ({"DB_PASS": "secret", "DB_PORT": "x"}, "DB_PORT must be a port number"),
        ({"DB_PASS": "secret", "DB_PORT": "70000"}, "DB_PORT must be a port number"),
        ({"DB_PASS": "secret", "DB_ENGINE": "db2"}, "DB_ENGINE names 'db2'"),
    ],
)
def test_bad_parts_are_explained(environ, message):
    with pytest.raises(ImproperlyConfigured, match=message) as caught:
        database_from_environment(environ, Path("unused"))
    assert "secret" not in str(caught.value)


def test_environment_values_are_checked(monkeypatch):
    monkeypatch.setenv("X", "")
    assert (flag("X", default=True), seconds("X", 5), words("X", "a, b,")) == (True, 5, ["a", "b"])
    monkeypatch.setenv("X", "No")
    assert flag("X", default=True) is False
    monkeypatch.setenv("X", "0.5")
    assert seconds("X", 5) == 0.5
    for value in ("maybe", "nan", "inf"):
        monkeypatch.setenv("X", value)
        with pytest.raises(ImproperlyConfigured, match=r"^X must be 1 or 0"):
            flag("X", default=True)
        with pytest.raises(ImproperlyConfigured, match=r"^X must be a number of seconds"):
            seconds("X", 5)


# ------------------------------------------------------------------------------ admin and tables


@pytest.mark.parametrize("model", ["order", "generatedreport"])
def test_admin_shows_rows_and_changes_none(january, admin_client, model):
    generate_report(FakeContext(), tenant_id="acme", report_month="2042-01")
    shown = admin_client.get(f"/admin/reports/{model}/")
    assert shown.status_code == 200
    assert "acme" in shown.text
    assert admin_client.get(f"/admin/reports/{model}/add/").status_code == 403


def test_table_aligns_text_left_and_numbers_right():
    assert table("Jobs", ("job", "type"), [(7, "a"), (12, "bb")]).splitlines() == [
        "Jobs",
        "job  type",
        "---------",
        "  7  a",
        " 12  bb",
    ]
    assert "(none)" in table("Jobs", ("job", "type"), [])


@pytest.mark.only_on("sqlite")
def test_demo_replaces_the_database_of_an_earlier_run(tmp_path):
    project = Path(settings.BASE_DIR)
    shutil.copytree(project, tmp_path / "p", ignore=shutil.ignore_patterns("*.sqlite3*"))
    with closing(sqlite3.connect(tmp_path / "p" / "demo.sqlite3")) as earlier:
        earlier.execute("CREATE TABLE reports_order (id integer)")
        earlier.commit()
    environ = {**os.environ, "PYTHONPATH": str(project.parent)}
    environ.pop("DATABASE_URL", None)
    command = [sys.executable, "-W", "error", str(tmp_path / "p" / "manage.py"), "demo"]
    ended = subprocess.run(
        command, env=environ, cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stderr
    shown = ended.stdout.splitlines()
    assert "2824 orders added, 0 were there already." in shown
    heads = [shown.index(title) + 3 for title in ("Reports", "Attempts", "Dead letters")]
    reports, attempts, dead = (shown[head : shown.index("", head)] for head in heads)
    assert [line.split()[:2] for line in reports] == [
        ["acme", "2042-01"],
        ["acme", "2042-02"],
        ["globex", "2042-01"],
        ["initech", "2042-01"],
        ["umbrella", "2042-01"],
    ]
    ends = [line.split()[1:4] for line in attempts]
    assert ends.count(["report.generate", "1", "completed"]) == 4
    assert [end[1:] for end in ends[4:]] == [
        ["1", "failed"],
        ["2", "failed"],
        ["3", "completed"],
        ["1", "rejected"],
    ]
    assert [line.split()[1:3] for line in dead] == [["unsupported.fixture", "1"]]
    assert shown[-1].startswith("DJANGO_DEBUG=1 DATABASE_URL=sqlite:///p/demo.sqlite3 ")
    assert shown[-1].endswith(" p/manage.py runserver")
