"""`leasequeue import celery-beat`: what becomes of each kind of periodic task."""

from __future__ import annotations

import pytest
from django.utils import timezone

from django_leasequeue import add_schedule
from django_leasequeue.importers.table import IMPORTERS
from django_leasequeue.models import Schedule

FIELDS = ("job_type", "payload", "queue_name", "cron", "every", "timezone", "enabled")


@pytest.fixture
def report(declare):
    return declare("report.made", queue="reports")(lambda tenant, month="": None)


def schedule(name: str) -> dict[str, object]:
    return dict(Schedule.objects.filter(name=name).values(*FIELDS).get())


def test_a_crontab_and_an_interval(celery_beat, report, leasequeue):
    crontab = celery_beat["CrontabSchedule"].objects.create(
        minute="0, 30", hour="4", day_of_week="mon-fri", timezone="Europe/Paris"
    )
    interval = celery_beat["IntervalSchedule"].objects.create(every=5, period="minutes")
    task = celery_beat["PeriodicTask"].objects.create
    task(name="a", task="shop.report", crontab=crontab, args='["acme"]', enabled=True)
    task(name="b", task="shop.report", interval=interval, kwargs='{"tenant": "b"}', queue="slow")
    arguments = ("import", "celery-beat", "--map", "shop.report=report.made")
    dry = leasequeue(*arguments, "--dry-run")
    assert (dry.code, Schedule.objects.count()) == (0, 0)
    assert dry.lines[:2] == ["would import a -> report.made", "would import b -> report.made"]
    assert leasequeue(*arguments).lines[-3:] == ["imported: 2", "present: 0", "left: 0"]
    assert schedule("a") == {
        "job_type": "report.made",
        "payload": {"tenant": "acme"},
        "queue_name": "reports",
        "cron": "0,30 4 * * mon-fri",
        "every": None,
        "timezone": "Europe/Paris",
        "enabled": False,
    }
    assert schedule("b") == {
        "job_type": "report.made",
        "payload": {"tenant": "b"},
        "queue_name": "slow",
        "cron": "",
        "every": 300.0,
        "timezone": "UTC",
        "enabled": False,
    }
    Schedule.objects.filter(name="a").update(enabled=True)
    again = leasequeue(*arguments, "--json").document
    assert [row["state"] for row in again["rows"]] == ["present", "present"]
    assert schedule("a")["enabled"]


def test_enable_takes_over_what_was_enabled(celery_beat, report, leasequeue):
    interval = celery_beat["IntervalSchedule"].objects.create(every=1, period="days")
    for name, enabled in (("on", True), ("off", False)):
        celery_beat["PeriodicTask"].objects.create(
            name=name, task="report.made", interval=interval, args='["a"]', enabled=enabled
        )
    assert leasequeue("import", "celery-beat", "--enable").code == 0
    assert (schedule("on")["enabled"], schedule("off")["enabled"]) == (True, False)
    assert Schedule.objects.get(name="on").next_tick > timezone.now()
    assert schedule("on")["every"] == 86_400


def test_what_has_no_counterpart_is_left_with_a_reason(celery_beat, report, leasequeue):
    now = timezone.now()
    day = celery_beat["IntervalSchedule"].objects.create(every=1, period="days")
    blink = celery_beat["IntervalSchedule"].objects.create(every=10, period="microseconds")
    both = celery_beat["CrontabSchedule"].objects.create(day_of_month="13", day_of_week="fri")
    wraps = celery_beat["CrontabSchedule"].objects.create(day_of_week="fri-mon")
    solar = celery_beat["SolarSchedule"].objects.create(event="sunset", latitude=1, longitude=2)
    clocked = celery_beat["ClockedSchedule"].objects.create(clocked_time=now)
    for name, values in {
        "solar": {"solar": solar},
        "clocked": {"clocked": clocked, "one_off": True},
        "once": {"interval": day, "one_off": True},
        "ends": {"interval": day, "expires": now},
        "blink": {"interval": blink},
        "friday the 13th": {"crontab": both},
        "unknown": {"interval": day, "task": "shop.other"},
        "long queue": {"interval": day, "queue": "q" * 65},
        "wraps": {"crontab": wraps},
        "misfit": {"interval": day, "args": '["secret", 1, 2, 3]'},
        "no JSON": {"interval": day, "args": "secret"},
    }.items():
        celery_beat["PeriodicTask"].objects.create(
            **{"name": name, "task": "report.made", "args": '["a"]', **values}
        )
    ended = leasequeue("import", "celery-beat")
    assert ended.code == 1
    assert not Schedule.objects.exists()
    assert "secret" not in ended.out + ended.err
    told = {line.partition(" (")[0].removeprefix("left "): line for line in ended.lines}
    for name, word in {
        "solar": "sun",
        "clocked": "run_after",
        "once": "run_after",
        "ends": "ends",
        "blink": "every is from 1 s",
        "friday the 13th": "weekday",
        "unknown": "--map shop.other=JOB_TYPE",
        "long queue": "1 to 64 characters",
        "wraps": "bad day-of-week",
        "misfit": "do not fit",
        "no JSON": "no JSON",
    }.items():
        assert word in told[name], name


def test_what_is_lost_is_told(celery_beat, report, leasequeue):
    day = celery_beat["IntervalSchedule"].objects.create(every=1, period="days")
    celery_beat["PeriodicTask"].objects.create(
        name="a", task="report.made", args='["a"]', interval=day, priority=3, expire_seconds=9
    )
    (row,) = leasequeue("import", "celery-beat", "--json").document["rows"]
    assert row["state"] == "imported"
    *lost, grid = row["notes"]
    assert [note.partition(":")[0] for note in lost] == ["priority", "expire_seconds"]
    assert grid == "it ticks at multiples since 1970 in UTC, not from a last run: cron has hours"


def test_what_celery_cleans_up_of_its_own_is_no_schedule(celery_beat, report, leasequeue):
    crontab = celery_beat["CrontabSchedule"].objects.create(minute="0", hour="4")
    celery_beat["PeriodicTask"].objects.create(
        name="celery.backend_cleanup", task="celery.backend_cleanup", crontab=crontab
    )
    assert leasequeue("import", "celery-beat", "--json").document["rows"] == []


def test_a_schedule_of_its_name_that_is_another_one(celery_beat, report, declare, leasequeue):
    minute = celery_beat["IntervalSchedule"].objects.create(every=1, period="minutes")
    celery_beat["PeriodicTask"].objects.create(
        name="daily", task="report.made", interval=minute, args='["a"]'
    )
    add_schedule("daily", "other.made", every=60)
    for arguments in (("--dry-run",), ()):
        ended = leasequeue("import", "celery-beat", *arguments)
        assert ended.code == 1
        assert "of job type other.made" in ended.out


def test_a_wrong_command_line_is_refused(celery_beat, report, leasequeue):
    for arguments, word in (
        (("--map", "old=no.such"), "no job type is named"),
        (("--map", "old"), "OLD=JOB_TYPE"),
        (("--map", "a=report.made", "--map", "a=report.made"), "each OLD once"),
        (("--mark",), "--mark is for tasks"),
        (("--source-database", "nowhere"), "no alias"),
    ):
        ended = leasequeue("import", "celery-beat", *arguments)
        assert ended.code == 2
        assert word in ended.err


def test_a_source_that_is_not_installed(queue_db, leasequeue):
    for source in IMPORTERS:
        ended = leasequeue("import", source)
        assert ended.code == 2
        assert "No app in INSTALLED_APPS has the label" in ended.err
