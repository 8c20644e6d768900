"""`leasequeue import django-q2`: each kind of schedule, and what is left."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

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
    "BW": ({}, "", 1_209_600),
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
    "dated": ({"intended_date_kwarg": "day"}, "intended date"),
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
