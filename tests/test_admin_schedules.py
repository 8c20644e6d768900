"""The admin's schedules: what is saved and refused, the preview, the actions, who may."""

from __future__ import annotations

import re
import threading
from html import unescape

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import User
from django.db import connections
from django.test import Client

from django_leasequeue import add_schedule, job
from django_leasequeue.admin.schedule_form import ScheduleForm
from django_leasequeue.models import Job, Schedule
from django_leasequeue.registry import registry
from tests.test_admin import act, answer, ask, logged_in, said, text, told, user_with

CLEAN = ScheduleForm.clean
PAGES = "/admin/leasequeue/schedule/"
FORM = {
    "name": "nightly",
    "job_type": "some.type",
    "payload": '{"n": 1}',
    "queue_name": "",
    "priority": "",
    "key": "",
    "cron": "30 2 * * *",
    "every": "",
    "timezone": "America/New_York",
    "catch_up": "latest",
    "reason": "tell why",
}


@pytest.fixture
def operator(queue_db) -> Client:
    return logged_in(User.objects.create_superuser("root", password="x"))


def post(client: Client, where: str, **changes: str) -> str:
    return unescape(text(client.post(f"{PAGES}{where}/", {**FORM, **changes}, follow=True)))


def test_adding_shows_the_next_ticks(operator):
    page = post(operator, "add")
    row = Schedule.objects.get()
    assert (row.name, row.payload, row.cron, row.queue_name) == (
        "nightly",
        {"n": 1},
        "30 2 * * *",
        "default",
    )
    assert row.next_tick is not None
    assert page.count("02:30:00 E") == 5 or "03:00:00 EDT" in page
    entry = LogEntry.objects.get()
    assert entry.object_id == str(row.pk)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"cron": "0 0 30 2 *"}, "bad day-of-month"),
        ({"cron": ""}, "either cron or every"),
        ({"every": "60"}, "either cron or every"),
        ({"cron": "", "every": "0.5"}, "every is from 1 s"),
        ({"timezone": "Mars"}, "no time zone 'Mars'"),
        ({"payload": "[1]"}, "it must be a dict"),
        ({"payload": "{"}, "Enter a valid JSON."),
        ({"priority": "101"}, "priority"),
        ({"catch_up": "some"}, "Select a valid choice"),
        ({"name": "taken"}, "There is a schedule of this name already."),
    ],
)
def test_what_is_refused_is_said(operator, changes, says):
    add_schedule("taken", "some.type", every=60)
    assert says in post(operator, "add", **changes)
    assert Schedule.objects.count() == 1


def test_editing(operator):
    row = add_schedule("nightly", "some.type", every=60, key="k")
    page = text(operator.get(f"{PAGES}{row.pk}/change/"))
    assert page.count(":00 UTC</div>") == 5
    post(operator, f"{row.pk}/change", cron="@daily", key="", queue_name="q")
    row.refresh_from_db()
    assert (row.cron, row.every, row.key, row.queue_name) == ("0 0 * * *", None, "", "q")
    assert (row.timezone, row.payload) == ("America/New_York", {"n": 1})
    assert "bad minute" in post(operator, f"{row.pk}/change", cron="61 * * * *")
    assert "no time zone" in post(operator, f"{row.pk}/change", timezone="x")


def test_a_name_and_a_declaration_stay(operator):
    row = add_schedule("a", "some.type", every=60)
    post(operator, f"{row.pk}/change", name="b")
    assert Schedule.objects.get().name == "a"
    Schedule.objects.update(declared_in_code=True)
    assert operator.post(f"{PAGES}{row.pk}/change/", FORM).status_code == 403
    assert "02:30" in text(operator.get(f"{PAGES}{row.pk}/change/"))


def test_the_actions(operator):
    rows = [add_schedule(name, "some.type", every=60).pk for name in ("a", "b")]
    assert act(operator, "disable", rows, where=PAGES) == "2 schedules were disabled."
    assert not Schedule.objects.filter(enabled=True).exists()
    assert act(operator, "enable", rows[:1], where=PAGES) == "1 schedule was enabled."
    assert act(operator, "enable", rows[:1], where=PAGES) == "0 schedules were enabled."
    assert act(operator, "run_now", rows, where=PAGES) == "2 jobs were enqueued."
    assert set(Job.objects.values_list("schedule", "tick_at")) == {("a", None), ("b", None)}
    messages = LogEntry.objects.order_by("pk").values_list("object_repr", "change_message")
    assert list(messages) == [
        *(("a", "Disabled: tell why"), ("b", "Disabled: tell why"), ("a", "Enabled: tell why")),
        *(("a", "Run now: tell why"), ("b", "Run now: tell why")),
    ]


def test_an_action_is_for_those_that_were_named(operator):
    for name in ("a", "b"):
        add_schedule(name, "some.type", every=60)
    asked = ask(operator, "disable", where=PAGES)
    assert said(asked) == "It is for these schedules. a b"
    add_schedule("c", "some.type", every=60)
    assert told(answer(operator, asked)) == "2 schedules were disabled."
    assert Schedule.objects.get(enabled=True).name == "c"


def test_a_form_that_is_sent_twice_makes_one_job(operator):
    rows = [add_schedule(name, "some.type", every=60).pk for name in ("a", "b")]
    asked = ask(operator, "run_now", rows[:1], where=PAGES)
    assert told(answer(operator, asked)) == "1 job was enqueued."
    made = Job.objects.get()
    again = answer(operator, asked)
    assert told(again) == f"A: job {made.pk} is there already 0 jobs were enqueued."
    assert Job.objects.get() == made and LogEntry.objects.count() == 1
    for token in ("", "x", "a" * 33):
        page = answer(operator, asked, token=token)
        assert 'class="errorlist' in text(page)
    # Another page of the same is another run; so is another schedule.
    assert act(operator, "run_now", rows, where=PAGES) == "2 jobs were enqueued."
    assert Job.objects.count() == 3


def test_two_forms_at_once(operator):
    """A double click, both requests on their way before either has answered."""
    (row,) = [add_schedule("a", "some.type", every=60).pk]
    asked = ask(operator, "run_now", [row], where=PAGES)
    start = threading.Barrier(2)
    found = []

    def press():
        start.wait(10)
        try:
            found.append(told(answer(operator, asked)))
        finally:
            connections.close_all()

    rival = threading.Thread(target=press)
    rival.start()
    press()
    rival.join(60)
    assert sorted(re.findall(r"(\d) jobs? w", " ".join(found))) == ["0", "1"], found
    assert Job.objects.count() == LogEntry.objects.count() == 1


@pytest.mark.parametrize("payload", ["[]", "0", '""', "[1]"])
def test_a_payload_is_an_object(operator, payload):
    assert "payload" in post(operator, "add", payload=payload)
    assert not Schedule.objects.exists()


def test_what_the_core_refuses_of_a_checked_form_is_said(operator, monkeypatch):
    """Two operators save at once: the form has checked what is not so any more."""
    row = add_schedule("nightly", "some.type", every=60)
    monkeypatch.setattr(ScheduleForm, "clean", lambda form: checked_late(form, row))
    page = post(operator, f"{row.pk}/change")
    assert "declared in code" in page
    assert Schedule.objects.get().every == 60


def checked_late(form, row):
    data = CLEAN(form)
    Schedule.objects.filter(pk=row.pk).update(declared_in_code=True)
    return data


def test_a_spoiled_row_is_shown_and_told(operator):
    row = add_schedule("a", "some.type", every=60, enabled=False)
    Schedule.objects.update(timezone="Mars")
    assert "no time zone" in unescape(text(operator.get(f"{PAGES}{row.pk}/change/")))
    act(operator, "enable", [row.pk], where=PAGES)
    assert not Schedule.objects.get().enabled
    assert operator.get(PAGES).status_code == 200


def test_a_viewer_sees_no_sensitive_field_and_changes_nothing(queue_db):
    job("secretive", sensitive=("token",))(lambda token: None)
    try:
        row = add_schedule("a", "secretive", {"token": "swordfish"}, every=60)
        client = logged_in(user_with("view_schedule"))
        page = text(client.get(f"{PAGES}{row.pk}/change/"))
    finally:
        registry.remove("secretive")
    assert "********" in page
    assert "swordfish" not in page
    assert client.get(f"{PAGES}add/").status_code == 403
    assert client.post(f"{PAGES}{row.pk}/change/", FORM).status_code == 403
    client.post(PAGES, {"action": "run_now", "_selected_action": [row.pk]})
    assert not Job.objects.exists()


@pytest.mark.parametrize(
    "lookup", ["payload__card__startswith=4", "payload__icontains=4", "every=nan", "key=k"]
)
def test_what_is_masked_is_not_to_be_guessed(queue_db, lookup):
    add_schedule("monthly", "some.type", {"card": "4111"}, every=60)
    viewer = logged_in(user_with("view_schedule"))
    assert viewer.get(f"{PAGES}?{lookup}").status_code == 400
    assert "monthly" in text(viewer.get(f"{PAGES}?enabled__exact=1&q=month"))


def test_nothing_changes_by_get(operator):
    row = add_schedule("a", "some.type", every=60)
    for action in ("enable", "disable", "run_now"):
        operator.get(PAGES, {"action": action, "_selected_action": [row.pk]})
    assert not Job.objects.exists()
    assert Schedule.objects.get().enabled


def test_deleting(operator):
    row = add_schedule("a", "some.type", every=60)
    page = operator.post(f"{PAGES}{row.pk}/delete/", {"post": "yes"})
    assert Schedule.objects.exists()
    assert f'href="{PAGES}"' in text(page).partition('id="confirm"')[2]
    assert told(answer(operator, page)) == "1 schedule was deleted."
    assert not Schedule.objects.exists()
    assert LogEntry.objects.get().is_deletion()
    for pk in (row.pk, "nonsense"):
        assert operator.get(f"{PAGES}{pk}/delete/").status_code == 404
    viewer = logged_in(user_with("view_schedule", "change_schedule"))
    row = add_schedule("a", "some.type", every=60)
    assert viewer.post(f"{PAGES}{row.pk}/delete/", {"post": "yes"}).status_code == 403


@pytest.mark.parametrize("reason", ["", "two\nlines"])
def test_a_schedule_is_written_for_a_reason(operator, reason):
    assert "eason" in post(operator, "add", reason=reason).partition('class="errorlist"')[2][:200]
    row = add_schedule("a", "some.type", every=60)
    post(operator, f"{row.pk}/change", reason=reason)
    assert Schedule.objects.get().every == 60
    assert not LogEntry.objects.exists()


def test_a_payload_is_edited_by_those_who_may_see_and_sign_it(queue_db, settings):
    @job("secretive", sensitive=("card",))
    def secretive(card):
        pass

    try:
        add_schedule("monthly", "secretive", {"card": "4111"}, every=60)
        add_schedule("plain", "some.type", every=60)
        where = {row.name: f"{row.pk}/change" for row in Schedule.objects.all()}
        rights = ("view_schedule", "add_schedule", "change_schedule")
        clerk = logged_in(user_with(*rights))
        assert "4111" not in text(clerk.get(f"{PAGES}{where['monthly']}/"))
        assert 'name="payload"' in text(clerk.get(f"{PAGES}{where['plain']}/"))
        settings.LEASEQUEUE = {**settings.LEASEQUEUE, "SIGNING_KEYS": ["k" * 16]}
        assert 'name="payload"' not in text(clerk.get(f"{PAGES}{where['plain']}/"))
        assert clerk.get(f"{PAGES}add/").status_code == 403
        plain = Schedule.objects.get(name="plain")
        assert act(clerk, "disable", [plain.pk], where=PAGES) == "1 schedule was disabled."
    finally:
        registry.remove("secretive")
