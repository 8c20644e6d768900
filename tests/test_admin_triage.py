"""The admin's triage: groups of dead letters, bulk runs that are confirmed, notes, one job."""

from __future__ import annotations

import json
import re
import threading
from datetime import timedelta
from html import unescape
from typing import Any

import pytest
from django.contrib import admin
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import User
from django.db import OperationalError, connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.test import Client
from django.urls import path
from django.utils import timezone

from django_leasequeue import enqueue, job
from django_leasequeue.admin import BulkRunAdmin, DeadGroupAdmin, JobAdmin, one_job, payload_edit
from django_leasequeue.core import dead_search, operate
from django_leasequeue.core.clock import UtcNow
from django_leasequeue.models import BulkRun, DeadGroup, Job, JobAttempt, JobEffect
from django_leasequeue.registry import registry
from tests.core.arrange import run as execute
from tests.core.bulk import bury, statuses
from tests.statements import count_statements
from tests.test_admin import answer, ask, logged_in, make_reserved, text, user_with

# A site of a project's own, for the test that sets ROOT_URLCONF to this module.
ops = admin.AdminSite(name="ops")
ops.register(Job, JobAdmin)
ops.register(DeadGroup, DeadGroupAdmin)
ops.register(BulkRun, BulkRunAdmin)
urlpatterns = [path("ops/", ops.urls)]

ROOT = "/admin/leasequeue/"
DEAD = f"{ROOT}deadgroup/"
A, B = "a" * 16, "b" * 16


@pytest.fixture
def operator(queue_db: BaseDatabaseWrapper) -> Client:
    return logged_in(User.objects.create_superuser("root", password="x"))


def shown(page: str) -> dict[str, str]:
    """Return what the hidden and number fields of a page hold."""
    inputs = re.findall(r'<input type="(?:hidden|number)"([^>]*)>', page)
    pairs = [
        (name[1], value[1])
        for attributes in inputs
        if (name := re.search('name="([^"]+)"', attributes))
        and (value := re.search('value="([^"]*)"', attributes))
    ]
    return dict(pairs)


def confirm(client: Client, query: str, operation: str = "requeue", **more: str) -> str:
    """Look at the confirmation and send it; return the address that follows."""
    address = f"{DEAD}{operation}/confirm/?{query}"
    data = {**shown(text(client.get(address))), "reason": "fixed", **more}
    response = client.post(address, data)
    assert response.status_code == 302, text(response)
    return str(response.headers["Location"])


def logged() -> list[str]:
    return list(LogEntry.objects.order_by("pk").values_list("change_message", flat=True))


# ------------------------------------------------------------------------------------- groups


def test_groups_say_how_many_what_and_where(operator: Client) -> None:
    ids = bury(3, "mail.send", fingerprint=A, last_error="<b>Refused</b>", claims=1)
    bury(1, "mail.send", fingerprint=B, last_error="Timeout")
    bury(2, "report")
    JobAttempt.objects.create(
        job_id=ids[-1], number=1, token=b"t" * 16, outcome="failed", frames=["app.py:9 send"]
    )
    page = text(operator.get(DEAD))
    rows = re.findall(r'<th scope="row">.*?</tr>', page, re.DOTALL)
    assert [re.search(r"<td>(\d+)</td>", row)[1] for row in rows] == ["3", "2", "1"]  # type: ignore[index]
    assert "&lt;b&gt;Refused&lt;/b&gt;" in rows[0] and "app.py:9 send" in rows[0]
    assert "no error was recorded" in rows[1]
    assert "3 deaths in the last 24 hours" in rows[0]
    assert "6 dead letters" in page
    page = text(operator.get(f"{DEAD}?type=report"))
    assert "2 dead letters" in page and "mail.send" not in page
    assert "There are no dead letters here" in text(operator.get(f"{DEAD}?queue=nowhere"))
    assert operator.get(f"{DEAD}?type={'x' * 300}").status_code == 404
    assert operator.get(f"{DEAD}?fingerprint=é").status_code == 404


def test_a_page_of_groups_asks_little(operator: Client, connection: BaseDatabaseWrapper) -> None:
    for number in range(60):
        bury(2, f"type-{number:02}", fingerprint=f"{number:016}", claims=1)
    with count_statements(connection) as statements:
        page = text(operator.get(DEAD))
    assert len(statements) < 15, statements
    assert page.count('<th scope="row">') == 50
    assert text(operator.get(f"{DEAD}?p=2")).count('<th scope="row">') == 10
    assert not [sql for sql in statements if re.search('["`]payload["`]', sql)]


def test_every_group_is_described_and_in_either_order(operator: Client) -> None:
    for number in range(230):
        bury(1, f"type-{number:03}", fingerprint=f"{number:016}", last_error=f"error {number}.")
    bury(2, "most", fingerprint="f" * 16, finished_at="2021-01-01 00:00:00+00:00")
    asleep = DeadGroup.objects.create(fingerprint=f"{0:016}", note="x")
    DeadGroup.objects.create(fingerprint=f"{1:016}", note="a note")
    DeadGroup.objects.filter(pk=asleep.pk).update(snoozed_until=UtcNow() + timedelta(hours=1))
    pages = "".join(text(operator.get(f"{DEAD}?p={number}")) for number in range(1, 6))
    assert len(set(re.findall(r"type-\d{3}</a><br>error \d+\.", pages))) == 229
    assert "a note" in pages and "type-000" not in pages
    assert "1 group is snoozed" in pages
    first = re.findall(r">(most|type-\d{3})</a>", text(operator.get(DEAD)))[0]
    assert first == "most"
    latest = text(operator.get(f"{DEAD}?sort=last"))
    assert re.findall(r">(most|type-\d{3})</a>", latest)[:2] == ["type-229", "type-228"]
    assert 'href="?sort=last&amp;p=2"' in latest
    assert "most" in text(operator.get(f"{DEAD}?sort=last&p=5"))


def test_a_type_that_is_empty_is_not_all_types(operator: Client) -> None:
    """Plain SQL can put it in."""
    (empty, other) = (*bury(1, "", queue_name=""), *bury(1, "mail.send"))
    page = text(operator.get(DEAD))
    (link,) = re.findall(r'href="([^"]*)">\(empty\)</a>', page)
    query = link.replace("&amp;", "&").partition("?")[2]
    page = text(operator.get(f"{DEAD}group/?{query}"))
    assert re.findall(r'name="job" value="(\d+)"', page) == [str(empty)]
    assert "<dd>(empty)</dd>" in text(operator.get(f"{DEAD}requeue/confirm/?{query}"))
    assert "2 dead letters" in text(operator.get(f"{DEAD}?type=&queue="))  # the form, left empty
    assert "1 dead letter" in text(operator.get(f"{DEAD}?queue=&exact=1"))
    confirm(operator, query)
    assert statuses([empty, other]) == ["ready", "dead"]
    jobs = text(operator.get(f"{ROOT}job/?type="))
    assert jobs.count('name="_selected_action"') == 1
    assert ">(empty)</a>" in jobs


def test_what_was_not_looked_at_is_said(operator: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dead_search, "MOST_DEAD", 3)
    bury(5, fingerprint=A)
    page = text(operator.get(DEAD))
    assert "3 dead letters+" in page and "there are older ones" in page
    assert "raise the number" in text(operator.get(f"{DEAD}requeue/confirm/"))


def test_what_is_named_is_found_behind_those_that_died_last(
    operator: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dead_search, "MOST_DEAD", 3)
    old = {"finished_at": timezone.now() - timedelta(days=3)}
    bury(2, "mail.send", queue_name="mail", fingerprint=A, **old)
    bury(4, "report", fingerprint=B)
    assert "mail.send" not in text(operator.get(DEAD))
    for query in ("queue=mail", "type=mail.send", f"type=mail.send&fingerprint={A}"):
        assert "2 dead letters" in text(operator.get(f"{DEAD}?{query}"))
        assert "2 dead letters would" in text(operator.get(f"{DEAD}requeue/confirm/?{query}"))
    assert "2 dead letters" in text(operator.get(f"{DEAD}group/?type=mail.send&fingerprint={A}"))


def test_a_large_snoozed_group_hides_no_others(
    operator: Client, connection: BaseDatabaseWrapper, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dead_search, "MOST_DEAD", 3)
    old = {"finished_at": timezone.now() - timedelta(days=3)}
    awake = bury(2, "mail.send", fingerprint=A, **old)
    asleep = bury(4, "report", fingerprint=B)
    operator.post(f"{DEAD}group/snooze/?fingerprint={B}", {"hours": "2", "reason": "tonight"})
    for query in ("", "queue=default", "type=mail.send"):
        with count_statements(connection) as statements:
            page = text(operator.get(f"{DEAD}?{query}"))
        assert len(statements) < 15, statements
        assert "2 dead letters\n" in page and "mail.send" in page
    assert "1 group is snoozed: show it" in text(operator.get(DEAD))
    confirm(operator, "")
    assert statuses([*awake, *asleep]) == ["ready"] * 2 + ["dead"] * 4


def test_when_a_group_began_is_said_as_far_as_it_was_looked_at(
    operator: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    bury(5, fingerprint=A, finished_at=timezone.now() - timedelta(days=3))
    pages = (DEAD, f"{DEAD}group/?type=arranged&fingerprint={A}")
    assert "or before" not in "".join(text(operator.get(page)) for page in pages)
    monkeypatch.setattr(dead_search, "MOST_DEAD", 3)
    for page in pages:
        assert "3\xa0days ago, or before" in text(operator.get(page))


def test_a_groups_page_is_about_one_group(operator: Client) -> None:
    """Whatever its address leaves out: what its links requeue is what it shows."""
    bury(2, "mail.send", fingerprint=A)
    bury(3, "mail.send", fingerprint=B)
    bury(1, "report", fingerprint=B)
    for query in ("type=mail.send", f"fingerprint={B}", ""):
        page = text(operator.get(f"{DEAD}group/?{query}", follow=True))
        assert "3 dead letters," in page
        links = re.findall(r'(?:href|action)="[^"]*deadgroup/[^"?]*\?([^"]*)"', page)
        assert {unescape(link) for link in links} == {f"type=mail.send&fingerprint={B}"}


@pytest.mark.parametrize(("most", "changed"), [("", 3), ("5", 5)])
def test_what_was_not_looked_at_is_left_alone(
    operator: Client, monkeypatch: pytest.MonkeyPatch, most: str, changed: int
) -> None:
    """A run goes by type: it would begin with the old ones. Asked for, they are meant as well."""
    monkeypatch.setattr(dead_search, "MOST_DEAD", 3)
    old = bury(2, "a.charge", finished_at=timezone.now() - timedelta(days=3))
    shown_jobs = bury(3, "z.send")
    confirm(operator, "", **({"most": most} if most else {}))
    run = BulkRun.objects.get()
    assert (run.state, run.changed) == ("finished", changed)
    assert statuses(shown_jobs) == ["ready"] * 3
    assert statuses(old) == (["ready"] * 2 if most else ["dead"] * 2)


def test_a_groups_page_lists_its_jobs(operator: Client, connection: BaseDatabaseWrapper) -> None:
    ids = bury(120, "mail.send", fingerprint=A, last_error="Refused")
    bury(1, "mail.send", fingerprint=B)
    with count_statements(connection) as statements:
        page = text(operator.get(f"{DEAD}group/?fingerprint={A}&type=mail.send"))
    assert len(statements) < 15, statements
    listed = [int(pk) for pk in re.findall(r'name="job" value="(\d+)"', page)]
    assert listed == ids[::-1][:100]
    assert f"{ROOT}job/{ids[-1]}/change/" in page
    more = text(operator.get(f"{DEAD}group/?fingerprint={A}&type=mail.send&p=2"))
    assert len(re.findall('name="job"', more)) == 20
    nothing = text(operator.get(f"{DEAD}group/?fingerprint={'c' * 16}"))
    assert "There are no dead letters here" in nothing


@pytest.mark.urls(__name__)
def test_on_a_site_of_the_projects_own(operator: Client) -> None:
    (pk, *_rest) = bury(2, "mail.send", fingerprint=A)
    dead = "/ops/leasequeue/deadgroup/"
    page = text(operator.get(f"{dead}group/?fingerprint={A}"))
    address = f"{dead}requeue/selected/?fingerprint={A}"
    data = {"shown_at": shown(page)["shown_at"], "job": pk, "reason": "x"}
    run = text(operator.post(address, data, follow=True))
    pages = [text(operator.get(one)) for one in (dead, f"/ops/leasequeue/job/{pk}/change/")]
    for one in (page, run, *pages):
        assert "/ops/leasequeue/" in one
        assert "/admin/leasequeue/" not in one


def test_the_way_back_is_marked_up_as_this_django_does(operator: Client) -> None:
    """Its styles are for the one element or the other."""
    bury(2, "mail.send", fingerprint=A)
    own = re.search(r'<(ol|div) class="breadcrumbs">', text(operator.get(f"{ROOT}job/")))
    assert own
    for address in (DEAD, f"{DEAD}group/?fingerprint={A}", f"{DEAD}requeue/confirm/"):
        page = text(operator.get(address))
        assert re.findall(r'<(\w+) class="breadcrumbs">', page) == [own[1]]
        assert 'href="/admin/leasequeue/deadgroup/">Dead letter groups</a>' in page


def test_strict_csp_has_nothing_to_refuse(operator: Client) -> None:
    (pk, *_rest) = bury(2, "mail.send", fingerprint=A)
    run = confirm(operator, f"fingerprint={A}", rate="0.001")
    for address in (DEAD, f"{DEAD}group/?fingerprint={A}", run, f"{ROOT}job/{pk}/change/"):
        page = text(operator.get(address))
        assert not re.search(r"<style|\sstyle=|\son\w+=|javascript:", page), address
        scripts = re.findall(r"<script([^>]*)>(.*?)</script>", page, re.DOTALL)
        inline = [one for one in scripts if "src=" not in one[0] or one[1].strip()]
        assert not inline, address


# --------------------------------------------------------------------------------- bulk runs


def test_a_group_is_requeued_and_the_others_are_not(operator: Client) -> None:
    ids = bury(300, "mail.send", fingerprint=A)
    others = bury(2, "mail.send", fingerprint=B)
    assert "300 dead letters would be ready again" in text(
        operator.get(f"{DEAD}requeue/confirm/?fingerprint={A}&type=mail.send")
    )
    address = confirm(operator, f"fingerprint={A}&type=mail.send")
    assert set(statuses(ids)) == {"ready"}
    assert statuses(others) == ["dead"] * 2
    page = text(operator.get(address))
    assert '<dd id="run-state">finished</dd>' in page
    assert '<span id="run-changed">300</span>' in page
    assert logged() == ["Started: fixed"] and "fixed" in page
    row = BulkRun.objects.get()
    assert (row.by, row.changed) == ("root", 300)
    assert "300" in text(operator.get(f"{ROOT}bulkrun/"))


@pytest.mark.parametrize("operation", ["requeue", "cancel"])
def test_a_job_says_which_run_changed_it_and_why(operator: Client, operation: str) -> None:
    """Thousands of jobs, and one entry: it is the run's, and each job knows its run."""
    ids, (other,) = bury(300, fingerprint=A), bury(1, fingerprint=B)
    address = confirm(operator, f"fingerprint={A}", operation, reason="a <b>provider</b> was down")
    assert LogEntry.objects.count() == 1
    run = BulkRun.objects.get()
    assert set(Job.objects.filter(pk__in=ids).values_list("bulk_run", flat=True)) == {run.pk}
    for page in ("history/", "change/"):
        shown_page = text(operator.get(f"{ROOT}job/{ids[-1]}/{page}"))
        assert f'href="{address}"' in shown_page
        for words in (f"{operation} #{run.pk}", "root", "Started: a &lt;b&gt;provider&lt;/b&gt;"):
            assert words in shown_page
        assert address not in text(operator.get(f"{ROOT}job/{other}/{page}"))
    run.delete()
    for page in ("history/", "change/"):
        assert "which was pruned" in text(operator.get(f"{ROOT}job/{ids[0]}/{page}"))


def test_without_its_entry_a_run_changes_nothing(
    operator: Client, connection: BaseDatabaseWrapper
) -> None:
    ids = bury(3, fingerprint=A)
    address = f"{DEAD}requeue/confirm/?fingerprint={A}"
    data = {**shown(text(operator.get(address))), "reason": "fixed"}
    with connection.execute_wrapper(no_entries):
        assert operator.post(address, data).status_code == 503
    assert statuses(ids) == ["dead"] * 3
    # The run is there, and whoever carries it on says why.
    page = text(operator.post(address, data, follow=True))
    assert "confirmed the same" in page and 'id="id_go_reason"' in page
    assert statuses(ids) == ["dead"] * 3
    go = f"{ROOT}bulkrun/{BulkRun.objects.get().pk}/go/"
    operator.post(go, {"reason": "the log is back"})
    assert (statuses(ids), logged()) == (["ready"] * 3, ["Carried on: the log is back"])


def no_entries(run: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
    """Refuse what is to be written to the log."""
    if "INSERT INTO" in sql and "django_admin_log" in sql:
        raise OperationalError(1290, "read only")
    return run(sql, params, many, context)


def test_never_more_than_was_shown(operator: Client) -> None:
    ids = bury(3, fingerprint=A)
    address = f"{DEAD}requeue/confirm/?fingerprint={A}"
    data = {**shown(text(operator.get(address))), "reason": "fixed"}
    later = bury(2, fingerprint=A)
    # As if it had died before, in a transaction that was not committed yet.
    (unseen,) = bury(1, fingerprint=A, finished_at="2021-01-01 00:00:00+00:00")
    operator.post(address, data)
    assert statuses([*ids, *later, unseen]) == ["ready"] * 3 + ["dead"] * 3


def test_sent_twice_it_is_one_run(operator: Client) -> None:
    ids = bury(3, fingerprint=A)
    address = f"{DEAD}requeue/confirm/?fingerprint={A}"
    data = {**shown(text(operator.get(address))), "reason": "fixed"}
    first = operator.post(address, data)
    Job.objects.filter(pk=ids[0]).update(status="dead", finished_at=UtcNow())
    second = operator.post(address, data)
    assert first.headers["Location"] == second.headers["Location"]
    assert BulkRun.objects.count() == 1
    # Another operator, who saw the same, is shown that run.
    other = logged_in(User.objects.create_superuser("second", password="x"))
    told = text(other.post(address, {**data, "rate": "3"}, follow=True))
    assert "root had confirmed the same" in told
    assert statuses(ids) == ["dead", "ready", "ready"]
    # What died again is shown again, and that is another confirmation.
    assert confirm(operator, f"fingerprint={A}") != first.headers["Location"]
    assert set(statuses(ids)) == {"ready"}


@pytest.mark.parametrize("who", ["double click", "another tab", "another operator"])
def test_confirmed_twice_at_once_it_is_one_run(operator: Client, who: str) -> None:
    """Case E2: each job is requeued once, and no more than was shown."""
    ids = bury(300, fingerprint=A)
    other = logged_in(User.objects.get())
    if who == "another operator":
        other = logged_in(User.objects.create_superuser("second", password="x"))
    address = f"{DEAD}requeue/confirm/?fingerprint={A}"
    mine = {**shown(text(operator.get(address))), "reason": "fixed"}
    theirs = mine
    if who != "double click":
        theirs = {**shown(text(other.get(address))), "reason": "fixed"}
        assert theirs["shown_at"] > mine["shown_at"]
    # As if they had died before, in a transaction that was not committed when it was shown.
    unseen = bury(3, fingerprint=A, finished_at="2021-01-01 00:00:00+00:00")
    start = threading.Barrier(2)
    found: list[str] = []

    def press(client: Client, data: dict[str, str]) -> None:
        start.wait(10)
        try:
            found.append(client.post(address, data).headers["Location"])
        finally:
            connections.close_all()

    rival = threading.Thread(target=press, args=[other, theirs])
    rival.start()
    press(operator, mine)
    rival.join(60)
    assert len(found) == 2 and len(set(found)) == 1
    assert BulkRun.objects.get().changed == 300
    assert statuses([*ids, *unseen]) == ["ready"] * 300 + ["dead"] * 3


def test_ticked_jobs_that_are_sent_twice_at_once(operator: Client) -> None:
    ids = bury(3, fingerprint=A)
    page = text(operator.get(f"{DEAD}group/?fingerprint={A}"))
    data = {"shown_at": shown(page)["shown_at"], "job": ids[:2], "reason": "x"}
    address = f"{DEAD}requeue/selected/?fingerprint={A}"
    operator.post(address, data)
    # As if the other request had looked before any of them was requeued.
    Job.objects.filter(pk__in=ids).update(status="dead", finished_at="2021-01-01 00:00:00+00:00")
    told = text(operator.post(address, data, follow=True))
    assert "confirmed the same" in told
    assert statuses(ids) == ["dead"] * 3
    assert BulkRun.objects.count() == 1


def test_a_confirmation_of_something_else_is_none(operator: Client) -> None:
    ids = bury(2, "mail.send", fingerprint=A)
    mine = shown(text(operator.get(f"{DEAD}cancel/confirm/?type=mail.send")))
    data = {**mine, "reason": "x"}
    for token in (mine["token"], "", "x", mine["token"][:-8] + "00000009", "é" * 49):
        answer = operator.post(f"{DEAD}requeue/confirm/?type=mail.send", {**data, "token": token})
        assert answer.status_code == 200
    assert statuses(ids) == ["dead"] * 2
    assert not BulkRun.objects.exists()


def test_jobs_that_plain_sql_made_dead_without_a_time(operator: Client) -> None:
    ids = bury(3, fingerprint=A, finished_at=None)
    page = text(operator.get(f"{DEAD}group/?fingerprint={A}"))
    data = {"shown_at": shown(page)["shown_at"], "job": ids[:1], "reason": "x"}
    operator.post(f"{DEAD}requeue/selected/?fingerprint={A}", data)
    assert statuses(ids) == ["ready", "dead", "dead"]
    confirm(operator, f"fingerprint={A}")
    assert statuses(ids) == ["ready"] * 3
    assert BulkRun.objects.order_by("pk").last().changed == 2  # type: ignore[union-attr]


def test_snoozed_groups_are_left_out_unless_they_are_meant(operator: Client) -> None:
    asleep, awake = bury(2, "mail.send", fingerprint=A), bury(3, "mail.send", fingerprint=B)
    later = bury(1, "mail.send", fingerprint="c" * 16)
    query = f"{DEAD}group/snooze/?fingerprint={{}}"
    operator.post(query.format(A), {"hours": "2", "reason": "tonight"})
    assert "4 dead letters" in text(operator.get(DEAD))
    address = f"{DEAD}requeue/confirm/?type=mail.send"
    page = text(operator.get(address))
    assert "4 dead letters would be ready" in page
    assert "1 group that is snoozed is left out" in page
    data = {**shown(page), "reason": "fixed"}
    # One is woken and another put to sleep meanwhile: neither was confirmed as it is now.
    operator.post(query.format(A), {"hours": "0", "reason": "now"})
    operator.post(query.format("c" * 16), {"hours": "2", "reason": "not now"})
    operator.post(address, data)
    assert statuses([*asleep, *awake, *later]) == ["dead"] * 2 + ["ready"] * 3 + ["dead"]
    # Named by its fingerprint, or asked for, it is meant.
    confirm(operator, f"fingerprint={'c' * 16}")
    assert statuses(later) == ["ready"]
    operator.post(query.format(A), {"hours": "2", "reason": "tonight"})
    for page in (address, f"{DEAD}?type=mail.send", DEAD):
        assert "All groups that are here are snoozed." in text(operator.get(page))
    assert 'id="with-snoozed"' in text(operator.get(address))
    confirm(operator, "type=mail.send&snoozed=1")
    assert statuses(asleep) == ["ready"] * 2


def test_a_confirmation_needs_a_reason_and_what_was_shown(operator: Client) -> None:
    ids = bury(1)
    address = f"{DEAD}requeue/confirm/"
    data = shown(text(operator.get(address)))
    for wrong in ({"reason": ""}, {"shown_at": "x"}, {"most": "0"}, {"rate": "nan"}):
        response = operator.post(address, {**data, "reason": "fixed", **wrong})
        assert response.status_code == 200, wrong
        assert "errorlist" in text(response), wrong
    assert statuses(ids) == ["dead"]
    assert operator.get(f"{DEAD}erase/confirm/").status_code == 404


@pytest.mark.parametrize(("most", "changed"), [("", 3), ("2", 2)])
def test_a_confirmation_that_is_shown_again_counts_again(
    operator: Client, most: str, changed: int
) -> None:
    ids = bury(2)
    address = f"{DEAD}requeue/confirm/"
    data = shown(text(operator.get(address)))
    ids += bury(1)
    if most:
        data |= {"shown": "7", "most": most}  # as many as the operator wants
    page = text(operator.post(address, {**data, "reason": "", "rate": "0.5", "canary": "1"}))
    again = shown(page)
    assert "3 dead letters would be ready" in page
    assert (again["shown"], again["most"]) == ("3", most or "3")
    assert again["shown_at"] > data["shown_at"]
    assert (again["rate"], again["canary"]) == ("0.5", "1")
    operator.post(address, {**again, "rate": "", "canary": "", "reason": "fixed"})
    assert statuses(ids).count("ready") == changed


def test_canary_and_rate_are_followed_from_the_page(operator: Client) -> None:
    ids = bury(4, fingerprint=A)
    address = confirm(operator, f"fingerprint={A}", canary="1", spread="60")
    assert "waits for the jobs that went first" in text(operator.get(address))
    assert statuses(ids) == ["ready", *["dead"] * 3]
    Job.objects.filter(pk=ids[0]).update(status="done")
    go = address.replace("change/", "go/")
    fragment = operator.post(go, headers={"X-Requested-With": "fetch"})
    assert '<dd id="run-state">finished</dd>' in text(fragment)
    assert "<html" not in text(fragment)
    assert statuses(ids) == ["done", *["ready"] * 3]
    assert operator.get(go).status_code == 405


def test_a_run_that_its_canary_stopped_is_carried_on(operator: Client) -> None:
    ids = bury(4, fingerprint=A)
    address = confirm(operator, f"fingerprint={A}", canary="1")
    Job.objects.filter(pk=ids[0]).update(status="dead", finished_at=UtcNow())
    go = address.replace("change/", "go/")
    operator.post(go)
    assert BulkRun.objects.get().state == "stopped"
    assert 'id="id_go_reason"' in text(operator.get(address))
    operator.post(go)
    assert BulkRun.objects.get().state == "stopped"  # no reason
    Job.objects.filter(pk=ids[0]).update(status="done")
    operator.post(go, {"reason": "mended"})
    assert statuses(ids) == ["done", *["ready"] * 3]
    assert BulkRun.objects.get().state == "finished"
    assert logged() == ["Started: fixed", "Carried on: mended"]


def test_a_run_is_carried_on_only_by_the_page_that_follows_a_post(operator: Client) -> None:
    """To open the page of a run, one that was stopped at the command line say, is to look."""
    ids = bury(4, fingerprint=A)
    address = confirm(operator, f"fingerprint={A}", rate="0.001")
    assert 'data-carries="1"' in text(operator.get(address))
    assert "data-carries" not in text(operator.get(address))  # loaded again
    go = address.replace("change/", "go/")
    operator.post(go)
    assert 'data-carries="1"' in text(operator.get(address))
    other = logged_in(User.objects.create_superuser("second", password="x"))
    page = text(other.get(address))
    assert "data-carries" not in page and 'id="id_go_reason"' in page
    BulkRun.objects.update(next_at=None)
    for headers in ({}, {"X-Requested-With": "fetch"}):
        assert other.post(go, headers=headers).status_code == 302
    assert statuses(ids).count("ready") == 1  # no reason
    assert "data-carries" not in text(other.get(address))
    other.post(go, {"reason": "the first operator is away"})
    assert statuses(ids).count("ready") == 2
    page = text(other.get(address))
    assert 'data-carries="1"' in page and 'id="id_go_reason"' not in page
    assert logged() == ["Started: fixed", "Carried on: the first operator is away"]
    BulkRun.objects.update(next_at=None)
    other.post(go, headers={"X-Requested-With": "fetch"})
    assert statuses(ids).count("ready") == 3


def test_a_run_that_stopped_before_its_scripts_turn_asks_why(operator: Client) -> None:
    bury(4, fingerprint=A)
    address = confirm(operator, f"fingerprint={A}", canary="1")
    BulkRun.objects.update(state="stopped")
    data = {"reason": "an old one"}
    go = address.replace("change/", "go/")
    answer = operator.post(go, data, headers={"X-Requested-With": "fetch"})
    assert (answer.status_code, BulkRun.objects.get().state) == (200, "stopped")


def test_open_pages_do_not_multiply_the_rate(operator: Client) -> None:
    ids = bury(400, fingerprint=A)
    address = confirm(operator, f"fingerprint={A}", rate="0.01")
    for _page in range(5):
        operator.post(address.replace("change/", "go/"))
    assert statuses(ids).count("ready") == 1


def test_the_ids_of_runs_are_not_read_for_a_list(
    operator: Client, connection: BaseDatabaseWrapper
) -> None:
    BulkRun.objects.create(operation="requeue", filter={"ids": [1, 2], "statuses": ["dead"]})
    with count_statements(connection) as statements:
        assert "requeue #" in text(operator.get(f"{ROOT}bulkrun/"))
    assert not [sql for sql in statements if re.search('["`]filter["`]', sql)]


def test_a_run_page_says_when_the_server_is_away(operator: Client) -> None:
    bury(2, fingerprint=A)
    page = text(operator.get(confirm(operator, f"fingerprint={A}", rate="0.001")))
    assert "data-away=" in page and "data-refused=" in page


def test_a_run_is_cancelled_with_a_reason(operator: Client) -> None:
    ids = bury(2, fingerprint=A)
    address = confirm(operator, f"fingerprint={A}", rate="0.001")
    page = text(operator.get(address))
    assert '<dd id="run-state">running</dd>' in page and "requeue --resume" in page
    cancel = address.replace("change/", "cancel/")
    operator.post(cancel, {"reason": " "})
    assert BulkRun.objects.get().state == "running"
    operator.post(cancel, {"reason": "wrong group"})
    operator.post(cancel, {"reason": "again"})
    assert BulkRun.objects.get().state == "cancelled"
    operator.post(address.replace("change/", "go/"))
    assert statuses(ids) == ["ready", "dead"]
    assert logged() == ["Started: fixed", "Cancelled: wrong group"]
    page = text(operator.get(address))
    assert "bulk-go" not in page and "wrong group" in page
    assert operator.post(address, {"state": "running"}).status_code == 403


def test_a_group_is_cancelled(operator: Client) -> None:
    ids = bury(3, fingerprint=A)
    confirm(operator, f"fingerprint={A}", "cancel")
    assert statuses(ids) == ["cancelled"] * 3
    assert "There are no dead letters here" in text(operator.get(DEAD))


def test_a_selection(operator: Client) -> None:
    ids = bury(3, fingerprint=A)
    page = text(operator.get(f"{DEAD}group/?fingerprint={A}"))
    address = f"{DEAD}requeue/selected/?fingerprint={A}"
    data = {"shown_at": shown(page)["shown_at"], "job": [*ids[:2], "x", 10**18]}
    operator.post(address, data)
    assert statuses(ids) == ["dead"] * 3  # no reason
    for shown_at in ("", "x", "2999-01-01", "yesterday"):
        wrong = {**data, "shown_at": shown_at, "reason": "tried"}
        assert "does not say when" in text(operator.post(address, wrong, follow=True))
    assert statuses(ids) == ["dead"] * 3
    operator.post(address, {**data, "reason": "tried"})
    assert statuses(ids) == ["ready", "ready", "dead"]
    # One of them dies again; what was pressed twice does not requeue it twice.
    Job.objects.filter(pk=ids[0]).update(status="dead", finished_at=UtcNow())
    operator.post(address, {**data, "reason": "tried"})
    assert statuses(ids) == ["dead", "ready", "dead"]
    operator.post(f"{DEAD}cancel/selected/", {**data, "job": ids[2:], "reason": "old"})
    assert statuses(ids) == ["dead", "ready", "cancelled"]


def test_those_without_a_fingerprint_are_a_group(operator: Client) -> None:
    (crashed,) = bury(1, "mail.send")
    (failed,) = bury(1, "mail.send", fingerprint=A)
    (other,) = bury(1, "report")
    confirm(operator, "type=mail.send&fingerprint=")
    assert statuses([crashed, failed, other]) == ["ready", "dead", "dead"]


# --------------------------------------------------------------------------- notes and snooze


def test_notes_and_snooze(operator: Client) -> None:
    bury(2, "mail.send", fingerprint=A)
    bury(1, "report", fingerprint=B)
    query = f"?type=mail.send&fingerprint={A}"
    operator.post(f"{DEAD}group/note/{query}", {"note": "see <b>runbook</b>"})
    assert "see &lt;b&gt;runbook" in text(operator.get(DEAD))
    operator.post(f"{DEAD}group/snooze/{query}", {"hours": "2"})
    assert DeadGroup.objects.get().snoozed_until is None  # no reason
    operator.post(f"{DEAD}group/snooze/{query}", {"hours": "2", "reason": "fix tonight"})
    page = text(operator.get(DEAD))
    assert "mail.send" not in page and "1 group is snoozed" in page
    page = text(operator.get(f"{DEAD}?snoozed=1"))
    assert "mail.send" in page and "snoozed until" in page
    page = text(operator.get(f"{DEAD}group/{query}"))
    assert "Snoozed until" in page
    assert "root: Snoozed for 2 hours: fix tonight" in page
    assert "root: Note: see &lt;b&gt;runbook" in page
    DeadGroup.objects.update(snoozed_until="2021-01-01 00:00:00+00:00")
    assert "mail.send" in text(operator.get(DEAD))
    operator.post(f"{DEAD}group/snooze/{query}", {"hours": "0", "reason": "now"})
    row = DeadGroup.objects.get()
    assert (row.snoozed_until, row.note) == (None, "see <b>runbook</b>")
    assert logged() == [
        "Note: see <b>runbook</b>",
        "Snoozed for 2 hours: fix tonight",
        "Snoozed for 0 hours: now",
    ]


# --------------------------------------------------------------------------------- permissions


def test_who_may_only_look_changes_nothing(queue_db: object) -> None:
    client = logged_in(user_with("view_job"))
    (pk,) = bury(1, fingerprint=A)
    for address in (DEAD, f"{DEAD}group/?fingerprint={A}", f"{ROOT}job/{pk}/change/"):
        page = text(client.get(address))
        assert not re.search("confirm/|selected/|note/|/act/|/payload/", page), address
    posts = [
        *(f"{DEAD}{name}/{what}/" for name in ("requeue", "cancel") for what in _STEPS),
        *(f"{DEAD}group/{what}/?fingerprint={A}" for what in ("note", "snooze")),
        *(f"{ROOT}job/{pk}/{what}/" for what in ("act/requeue", "act/cancel", "payload")),
    ]
    for address in posts:
        answer = client.post(address, {"reason": "x", "job": pk, "hours": "1", "note": "x"})
        assert answer.status_code == 403, address
    assert client.get(f"{DEAD}requeue/confirm/").status_code == 403
    assert statuses([pk]) == ["dead"]
    assert not DeadGroup.objects.exists() and not BulkRun.objects.exists()


_STEPS = ("confirm", "selected")


def test_no_permission_no_page(queue_db: object) -> None:
    client = logged_in(user_with())
    bury(1, fingerprint=A)
    for address in (DEAD, f"{DEAD}group/?fingerprint={A}", f"{ROOT}bulkrun/"):
        assert client.get(address).status_code == 403, address
    assert Client().get(DEAD).status_code == 302


def test_each_operation_has_its_own_permission(queue_db: object) -> None:
    client = logged_in(user_with("view_job", "cancel_job"))
    ids = bury(2, fingerprint=A)
    assert client.get(f"{DEAD}requeue/confirm/").status_code == 403
    address = confirm(client, f"fingerprint={A}", "cancel", rate="0.001")
    assert statuses(ids) == ["cancelled", "dead"]
    assert client.get(address).status_code == 200
    row = BulkRun.objects.get()
    BulkRun.objects.filter(pk=row.pk).update(operation="requeue")
    for step in ("go", "cancel"):
        answer = client.post(address.replace("change/", f"{step}/"), {"reason": "x"})
        assert answer.status_code == 403


def test_forms_need_a_csrf_token(operator: Client) -> None:
    ids = bury(1)
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(User.objects.get())
    for address in (f"{DEAD}requeue/confirm/", f"{ROOT}job/{ids[0]}/act/requeue/"):
        assert strict.post(address, {"reason": "x"}).status_code == 403
    assert statuses(ids) == ["dead"]


# --------------------------------------------------------------------------------- one job


def press(client: Client, pk: int, operation: str, reason: str = "x", **more: str) -> str:
    """Press a button of the job's page as it is now; return what follows."""
    page = text(client.get(f"{ROOT}job/{pk}/change/")).partition('id="job-act"')[2]
    data = {**shown(page), "reason": reason, **more}
    return text(client.post(f"{ROOT}job/{pk}/act/{operation}/", data, follow=True))


def test_requeue_and_cancel_from_the_jobs_page(operator: Client) -> None:
    (pk,) = bury(1, claims=3)
    page = f"{ROOT}job/{pk}/"
    assert "Requeue this job" in text(operator.get(f"{page}change/"))
    seen = {"claims": "3", "status": "dead"}
    for reason in ("", "a\0b", "x" * 501):
        press(operator, pk, "requeue", reason)
    assert statuses([pk]) == ["dead"] and logged() == []
    assert "The job was requeued" in press(operator, pk, "requeue", "fixed")
    again = press(operator, pk, "requeue", "fixed", **seen)
    assert "it has changed since" in again
    assert "Requeue this job" not in again
    # What was dead when it was shown, and is to be cancelled, is ready again: it stays so.
    assert "it has changed since" in press(operator, pk, "cancel", "not wanted", **seen)
    assert statuses([pk]) == ["ready"]
    Job.objects.filter(pk=pk).update(status="dead", claims=7)  # it ran, and died again
    late = press(operator, pk, "requeue", "fixed", **seen)
    assert "it has changed since" in late
    assert 'name="claims" value="7"' in late and 'name="status" value="dead"' in late
    for missing in ({"claims": ""}, {"claims": "x"}, {"status": ""}):
        assert "does not say when" in press(operator, pk, "requeue", "fixed", **missing)
    assert statuses([pk]) == ["dead"]
    press(operator, pk, "cancel", "not wanted")
    assert statuses([pk]) == ["cancelled"]
    assert logged() == ["Requeued: fixed", "Cancelled: not wanted"]
    assert operator.get(f"{page}act/cancel/").status_code == 405
    assert operator.post(f"{page}act/erase/", {"reason": "x"}).status_code == 404


def test_a_running_job_is_not_requeued_but_cancelled(operator: Client) -> None:
    pk = make_reserved()
    told = press(operator, pk, "requeue")
    assert "Nothing was changed" in told
    assert "Requeue this job" not in told
    assert statuses([pk]) == ["reserved"]
    _compared, written = edit(operator, pk, {"a": 1})
    assert written.status_code == 302
    assert (Job.objects.get().status, Job.objects.get().payload) == ("reserved", {})
    press(operator, pk, "cancel")
    assert statuses([pk]) == ["cancelled"]
    assert JobAttempt.objects.get().outcome == "cancelled"


@pytest.mark.parametrize("path", ["act", "payload"])
def test_a_job_that_changes_in_the_last_moment_is_left_alone(
    operator: Client, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    """After the page's own look at it: what is compared is the row that is locked and written."""
    (pk,) = bury(1, payload={"a": 1}, claims=3)
    module = one_job if path == "act" else payload_edit
    real = module.in_one

    def raced(work: Any) -> Any:
        operate.requeue(pk)  # it ran, and died again
        Job.objects.filter(pk=pk).update(status="dead", claims=4, finished_at=UtcNow())
        return real(work)

    monkeypatch.setattr(module, "in_one", raced)
    if path == "act":
        assert "it has changed since" in press(operator, pk, "requeue")
    else:
        edit(operator, pk, {"a": 2})
    row = Job.objects.get()
    assert (row.status, row.payload, row.claims) == ("dead", {"a": 1}, 4)
    assert logged() == []


@pytest.mark.parametrize("path", ["act", "payload"])
def test_without_its_entry_nothing_is_changed(
    operator: Client, connection: BaseDatabaseWrapper, path: str
) -> None:
    (pk,) = bury(1, payload={"a": 1})
    with connection.execute_wrapper(no_entries):
        if path == "act":
            assert "did not answer" in press(operator, pk, "requeue")
        else:
            assert edit(operator, pk, {"a": 2})[1].status_code == 503
    row = Job.objects.get()
    assert (row.status, row.payload) == ("dead", {"a": 1})


def test_the_lists_actions_are_for_what_was_shown(operator: Client) -> None:
    ids = bury(3)
    shown_at = shown(text(operator.get(f"{ROOT}job/")))["shown_at"]
    later = bury(1)
    answer(operator, ask(operator, "requeue_jobs", shown_at=shown_at))
    assert statuses([*ids, *later]) == ["ready"] * 3 + ["dead"]
    Job.objects.filter(pk=ids[0]).update(status="dead", finished_at=UtcNow())
    asked = ask(operator, "requeue_jobs", ids[:1], shown_at=shown_at)
    assert "0 jobs would be ready again" in text(asked)
    assert 'id="confirm"' not in text(asked)
    assert statuses(ids[:1]) == ["dead"]


def test_neighbours_and_effects(operator: Client, connection: BaseDatabaseWrapper) -> None:
    first = enqueue("demo.work", key="k", queue="a").pk
    other = enqueue("demo.work", key="k", queue="b").pk
    more = [enqueue("demo.work").pk for _ in range(12)]
    JobEffect.objects.create(job_id=first, name="charge", number=1)
    with count_statements(connection) as statements:
        page = text(operator.get(f"{ROOT}job/{first}/change/"))
    assert len(statements) < 15
    assert "charge (attempt 1," in page
    linked = [int(pk) for pk in re.findall(r'<li><a href="[^"]*/job/(\d+)/change/">#', page)]
    assert linked == [other, other, *more[:4]]


def test_the_holder_of_a_jobs_key_is_linked(operator: Client) -> None:
    old = enqueue("demo.work", key="k", key_until="finished").pk
    press(operator, old, "cancel")
    holder = enqueue("demo.work", key="k", key_until="finished").pk
    page = text(operator.get(f"{ROOT}job/{old}/change/"))
    assert f'{ROOT}job/{holder}/change/">#{holder}</a>' in page


# ----------------------------------------------------------------------------- payload edit


@pytest.fixture
def charge() -> Any:
    yield job("triage.charge", sensitive=("card",))(lambda card: None)
    registry.remove("triage.charge")


def edit(client: Client, pk: int, new: Any, **more: str) -> Any:
    """Compare a payload and confirm it."""
    address = f"{ROOT}job/{pk}/payload/"
    given = new if isinstance(new, str) else json.dumps(new)
    data = {**shown(text(client.get(address))), "payload": given, "reason": "typo"}
    compared = client.post(address, data)
    data |= {**shown(text(compared)), "confirm": "1", **more}
    return compared, client.post(address, data)


def test_a_payload_is_compared_and_requeued(operator: Client) -> None:
    (pk,) = bury(1, payload={"to": "ada", "n": 1}, claims=5)
    compared, _written = edit(operator, pk, {"to": "<ada>", "n": 1})
    diff = text(compared).partition('id="payload-diff"')[2].partition("</pre>")[0]
    assert re.findall(r"diff-(add|del)", diff) == ["del", "add"]
    assert "&quot;&lt;ada&gt;&quot;" in diff
    row = Job.objects.get()
    assert (row.status, row.payload, row.attempts, row.claims) == (
        *("ready", {"to": "<ada>", "n": 1}),
        *(0, 5),
    )
    assert logged() == ["Payload edited and requeued: typo"]


@pytest.mark.parametrize(
    "junk",
    [
        *("{", "[1]", '{"a": NaN}', '{"a": "\\ud800"}', "[" * 5000, '{"a": 1, "a": 2}'),
        *('{"a":' * 900 + "1" + "}" * 900, '{"a":' * 100_000, '{"a": ' + "9" * 5000 + "}"),
        *('{"a": {"b": [], "b": 0}}', '{"a": 1e999}', '{"a": -Infinity}'),
    ],
    ids=lambda junk: junk[:20],
)
def test_what_is_no_payload_is_refused(operator: Client, junk: str) -> None:
    (pk,) = bury(1, payload={"a": 1})
    _compared, answer = edit(operator, pk, junk)
    assert "This cannot be a payload" in text(answer)
    row = Job.objects.get()
    assert (row.status, row.payload) == ("dead", {"a": 1})


def test_a_payload_that_is_too_large_is_refused(operator: Client, settings: Any) -> None:
    (pk,) = bury(1, payload={"a": 1})
    address = f"{ROOT}job/{pk}/payload/"
    large = json.dumps({"a": "x" * 10_000_000})
    data = {**shown(text(operator.get(address))), "payload": large, "reason": "x"}
    assert operator.post(address, data).status_code == 400  # DATA_UPLOAD_MAX_MEMORY_SIZE
    settings.DATA_UPLOAD_MAX_MEMORY_SIZE = None
    assert "This cannot be a payload" in text(operator.post(address, data))
    assert Job.objects.get().payload == {"a": 1}


def test_a_payload_that_is_too_deep_to_be_edited(
    operator: Client, connection: BaseDatabaseWrapper
) -> None:
    if connection.vendor not in ("sqlite", "postgresql"):
        pytest.skip("MySQL and MariaDB refuse it")
    (pk,) = bury(1)
    depth = 990 if connection.vendor == "sqlite" else 3000
    deep = '{"a":' * depth + "1" + "}" * depth
    execute(connection, f"UPDATE leasequeue_job SET payload = '{deep}'")
    assert operator.get(f"{ROOT}job/{pk}/change/").status_code == 200
    # As deep as that some versions of Python can go.
    assert operator.get(f"{ROOT}job/{pk}/payload/").status_code in (200, 404)


def test_only_what_was_compared_is_written(operator: Client) -> None:
    (pk,) = bury(1, payload={"a": 1})
    _compared, answer = edit(operator, pk, {"a": 2}, payload='{"a": 3}')
    assert answer.status_code == 200
    assert Job.objects.get().payload == {"a": 1}


def test_a_job_that_changed_meanwhile_is_not_overwritten(operator: Client) -> None:
    (pk,) = bury(1, payload={"a": 1})
    address = f"{ROOT}job/{pk}/payload/"
    data = {**shown(text(operator.get(address))), "payload": '{"a": 2}', "reason": "typo"}
    Job.objects.update(payload={"a": 9})
    data |= {**shown(text(operator.post(address, data))), "confirm": "1"}
    assert "begin again" in text(operator.post(address, data))
    assert Job.objects.get().payload == {"a": 9}


@pytest.fixture
def greet() -> Any:
    def upcast(payload: dict[str, Any], from_version: int) -> dict[str, Any]:
        return {"first": payload.pop("name"), "was": from_version}

    yield job("triage.greet", version=3, upcast=upcast)(lambda first, was: None)
    registry.remove("triage.greet")


def test_an_older_payload_is_edited_as_the_code_has_it_now(operator: Client, greet: Any) -> None:
    (pk,) = bury(1, "triage.greet", payload={"name": "Ada"}, payload_version=2)
    page = text(operator.get(f"{ROOT}job/{pk}/payload/"))
    assert '{\n  "first": "Ada",\n  "was": 2\n}' in unescape(page)
    assert "of version 2. It is written as one of version 3" in page
    compared, _written = edit(operator, pk, {"first": "Bea", "was": 2})
    # What is compared is what lies there.
    assert '-  "name": "Ada"' in unescape(text(compared))
    row = Job.objects.get()
    assert (row.payload, row.payload_version) == ({"first": "Bea", "was": 2}, 3)


def test_an_older_payload_that_cannot_be_made_one_of_now(operator: Client, greet: Any) -> None:
    (pk,) = bury(1, "triage.greet", payload={"nome": "Ada"})
    page = text(operator.get(f"{ROOT}job/{pk}/payload/"))
    assert '"nome": "Ada"' in unescape(page) and "written as one of version 3" in page


def test_a_newer_payload_is_edited_where_it_is_known(operator: Client, greet: Any) -> None:
    (pk,) = bury(1, "triage.greet", payload={"first": "Ada", "was": 2}, payload_version=4)
    _compared, answer = edit(operator, pk, {"first": "Bea", "was": 2})
    assert "edit it where newer code runs" in text(answer)
    assert (Job.objects.get().status, Job.objects.get().payload_version) == ("dead", 4)


def test_editing_shows_the_payload_so_it_needs_both_permissions(
    queue_db: object, charge: Any
) -> None:
    (pk,) = bury(1, "triage.charge", payload={"card": "4111"})
    user = user_with("view_job", "requeue_job", "edit_payload")
    assert logged_in(user).get(f"{ROOT}job/{pk}/payload/").status_code == 403
    assert "4111" not in text(logged_in(user).get(f"{ROOT}job/{pk}/change/?reveal=1"))
    user.delete()
    client = logged_in(user_with("view_job", "requeue_job", "edit_payload", "view_payload"))
    page = text(client.get(f"{ROOT}job/{pk}/change/"))
    assert "4111" not in page and 'href="?reveal=1"' in page
    assert "4111" in text(client.get(f"{ROOT}job/{pk}/change/?reveal=1"))
    assert "4111" in text(client.get(f"{ROOT}job/{pk}/payload/"))


def test_where_signing_is_on_an_edit_signs_and_needs_that_permission(
    queue_db: object, settings: Any
) -> None:
    settings.LEASEQUEUE = {**settings.LEASEQUEUE, "SIGNING_KEYS": ["k" * 32]}
    pk = enqueue("demo.work", {"a": 1}).pk
    Job.objects.update(status="dead", finished_at=UtcNow())
    user = user_with("view_job", "requeue_job", "edit_payload")
    assert logged_in(user).get(f"{ROOT}job/{pk}/payload/").status_code == 403
    user.delete()
    client = logged_in(user_with("view_job", "requeue_job", "edit_payload", "sign_job"))
    before = Job.objects.get().signature
    edit(client, pk, {"a": 2})
    after = Job.objects.get()
    assert (after.status, after.payload) == ("ready", {"a": 2})
    assert after.signature not in ("", before)
    # A signature that is not right is never made right here.
    Job.objects.update(status="dead", finished_at=UtcNow(), signature="0" * 64)
    edit(client, pk, {"a": 3})
    assert (Job.objects.get().status, Job.objects.get().payload) == ("dead", {"a": 2})
