"""`leasequeue import django-q2`: each kind of schedule, and what is left."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from django.test import override_settings

from django_leasequeue.models import Schedule

FIRST = datetime(2042, 2, 5, 4, 30, tzinfo=UTC)  # a Wednesday


@pytest.fixture
def report(declare):
    return declare("report.made", queue="reports")(lambda tenant, n=0: None)


def make(models, **values):
    values = {"func": "report.made", "args": "'acme'", "next_run": FIRST, **values}
    schedules = models["Schedule"].objects
    made = schedules.bulk_create([models["Schedule"](**values)])  # its save() asks for croniter
    return made[0]


KINDS: dict[str, tuple[dict[str, Any], str, int | None]] = {
    "I": ({"minutes": 7}, "", 420),
    "H": ({}, "30 * * * *", None),
    "D": ({}, "30 4 * * *", None),
    "W": ({}, "30 4 * * 3", None),
    "M": ({}, "30 4 5 * *", None),
    "BM": ({}, "30 4 5 2,4,6,8,10,12 *", None),
    "Q": ({}, "30 4 5 2,5,8,11 *", None),
    "Y": ({}, "30 4 5 2 *", None),
    "C": ({"cron": "*/5 3 * * *"}, "*/5 3 * * *", None),
}


def test_each_kind(django_q2, report, leasequeue):
    for kind, (values, _cron, _every) in KINDS.items():
        make(django_q2, name=kind, schedule_type=kind, **values)
    ended = leasequeue("import", "django-q2")
    assert ended.code == 0, ended.out
    for kind, (_values, cron, every) in KINDS.items():
        made = Schedule.objects.get(name=kind)
        assert (made.cron, made.every, made.timezone) == (cron, every, "UTC"), kind
        assert (made.payload, made.queue_name) == ({"tenant": "acme"}, "reports")
        assert not made.enabled


ARGUMENTS = [
    ("'acme', 3", None, {"tenant": "acme", "n": 3}),
    ("('acme',)", "n=4", {"tenant": "acme", "n": 4}),
    (None, "{'tenant': 'b', 'q_options': {'timeout': 3}}", {"tenant": "b"}),
]


def test_arguments_are_read_as_over_there(django_q2, report, leasequeue):
    for args, kwargs, _payload in ARGUMENTS:
        make(django_q2, schedule_type="D", args=args, kwargs=kwargs, cluster="slow")
    assert leasequeue("import", "django-q2").code == 0
    made = Schedule.objects.order_by("pk")
    assert [one.payload for one in made] == [payload for _args, _kwargs, payload in ARGUMENTS]
    assert {one.queue_name for one in made} == {"slow"}
    assert all(one.name.startswith("report.made #") for one in made)


LEFT: dict[str, tuple[dict[str, Any], str]] = {
    "once": ({"schedule_type": "O"}, "run_after"),
    "ends": ({"repeats": 3}, "ends"),
    "no time": ({"next_run": None}, "next run"),
    "the 31st": (
        {"schedule_type": "M", "next_run": FIRST.replace(month=1, day=31)},
        "every month",
    ),
    "unknown": ({"func": "shop.other"}, "--map shop.other=JOB_TYPE"),
    "code": ({"args": "open('secret')"}, "no plain Python values"),
    "no call": ({"kwargs": "secret)("}, "no plain Python values"),
    "stars": ({"kwargs": "**{'secret': 1}"}, "no plain Python values"),
    "too many": ({"args": "1, 2, 3, 'secret'"}, "do not fit"),
    "no cron": ({"schedule_type": "C", "cron": "secret"}, "five fields"),
    "dated": ({"intended_date_kwarg": "day"}, "context.tick_at"),
    "fortnight": ({"schedule_type": "BW"}, "every other week"),
    "long cluster": ({"cluster": "c" * 65}, "1 to 64 characters"),
}


def test_what_has_no_counterpart_is_left(django_q2, report, leasequeue):
    for name, (values, _word) in LEFT.items():
        make(django_q2, **{"name": name, "schedule_type": "D", **values})
    ended = leasequeue("import", "django-q2")
    assert (ended.code, Schedule.objects.count()) == (1, 0)
    assert "secret" not in ended.out
    told = {line.partition(" (")[0].removeprefix("left "): line for line in ended.lines}
    for name, (_values, word) in LEFT.items():
        assert word in told[name], name


def test_schedules_of_one_name_are_left_whatever_was_imported(django_q2, report, leasequeue):
    make(django_q2, name="digest", schedule_type="D", kwargs="n=1")
    make(django_q2, name="digest", schedule_type="D", kwargs="n=2")
    make(django_q2, name="Digest", schedule_type="D", kwargs="n=3")
    for arguments in (("--dry-run",), ()):
        ended = leasequeue("import", "django-q2", *arguments)
        assert ended.code == 1
        assert ended.out.count("left digest (another schedule over there has its name") == 2
    assert Schedule.objects.get().payload == {"tenant": "acme", "n": 3}
    first = django_q2["Schedule"].objects.earliest("pk")  # MySQL told none when it was made
    django_q2["Schedule"].objects.filter(pk=first.pk).update(name="digest one")
    assert leasequeue("import", "django-q2").lines[-3:] == ["imported: 2", "present: 1", "left: 0"]
    assert dict(Schedule.objects.values_list("name", "payload__n")) == {
        "digest one": 1,
        "digest": 2,
        "Digest": 3,
    }


def test_schedules_without_a_name_are_their_own(django_q2, report, leasequeue):
    for name in (None, None, "", ""):
        make(django_q2, name=name, schedule_type="D")
    assert leasequeue("import", "django-q2").code == 0
    assert Schedule.objects.count() == 4


@pytest.mark.parametrize(
    ("conf", "expected"),
    [
        ({}, {"a": "all", "b": "all"}),
        ({"catch_up": False}, {"a": "latest", "b": "latest"}),
        ({"ALT_CLUSTERS": {"long": {"catch_up": False}}}, {"a": "all", "b": "latest"}),
    ],
)
def test_missed_runs_are_made_up_for_as_over_there(django_q2, report, leasequeue, conf, expected):
    make(django_q2, name="a", schedule_type="D")
    make(django_q2, name="b", schedule_type="D", cluster="long")
    with override_settings(Q_CLUSTER=conf):
        assert leasequeue("import", "django-q2").code == 0
    assert dict(Schedule.objects.values_list("name", "catch_up")) == expected


def test_an_interval_of_hours_is_told(django_q2, report, leasequeue):
    make(django_q2, name="often", schedule_type="I", minutes=59)
    make(django_q2, name="daily", schedule_type="I", minutes=1440)
    rows = leasequeue("import", "django-q2", "--json").document["rows"]
    assert ["multiples since 1970" in " ".join(row["notes"]) for row in rows] == [False, True]
