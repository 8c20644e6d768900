"""The admin: the list, finding, the page of a job, actions that count what really changed."""

from __future__ import annotations

import re
import subprocess
import sys
import threading
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from html import unescape
from typing import Any

import pytest
from django.contrib import admin
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Permission, User
from django.db import OperationalError, connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.test import Client
from django.urls import path

from django_leasequeue import enqueue, enqueue_many
from django_leasequeue.admin import (
    JobAdmin,
    QueueAdmin,
    actions,
    beginning,
    display,
    filters,
    paging,
)
from django_leasequeue.admin.lookup import queue_names
from django_leasequeue.codec import digest_key
from django_leasequeue.core import bulk, bulk_plan, operate
from django_leasequeue.core.bulk_step import step
from django_leasequeue.core.clock import UtcNow
from django_leasequeue.models import BulkRun, Job, JobAttempt, Queue
from django_leasequeue.statuses import Status
from tests.statements import count_statements

# A site of a project's own, for the tests that set ROOT_URLCONF to this module.
ops = admin.AdminSite(name="ops")
ops.register(Job, JobAdmin)
ops.register(Queue, QueueAdmin)
urlpatterns = [path("admin/", admin.site.urls), path("ops/", ops.urls)]

LIST = "/admin/leasequeue/job/"
QUEUES = "/admin/leasequeue/queue/"
RUNS = "/admin/leasequeue/bulkrun/"
HOUR = timedelta(hours=1)


@pytest.fixture
def operator(queue_db: BaseDatabaseWrapper) -> Client:
    return logged_in(User.objects.create_superuser("root", password="x"))


def logged_in(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def user_with(*codenames: str) -> User:
    user = User.objects.create_user("someone", is_staff=True)
    permissions = Permission.objects.filter(
        content_type__app_label="leasequeue", codename__in=codenames
    )
    assert len(permissions) == len(codenames)
    user.user_permissions.set(permissions)
    return user


def make(count: int = 1, **values: Any) -> list[int]:
    """Make jobs with these column values; their ids ascend."""
    ids = [job.pk for job in enqueue_many([("demo.work", {}, {})] * count)]
    if values:
        Job.objects.filter(pk__range=(ids[0], ids[-1])).update(**values)
    return ids


def make_reserved(**values: Any) -> int:
    lease = {"lease_token": b"t" * 16, "lease_until": UtcNow() + HOUR, "attempts": 1, "claims": 1}
    (pk,) = make(status=Status.RESERVED, **values)
    Job.objects.filter(pk=pk).update(**lease)
    return pk


def statuses(ids: Iterable[int]) -> list[str]:
    return list(Job.objects.filter(pk__in=ids).order_by("pk").values_list("status", flat=True))


def listed(client: Client, query: str = "") -> list[int]:
    """Return the ids that the list shows, in its order."""
    response = client.get(f"{LIST}?{query}")
    assert response.status_code == 200, response.headers
    return [int(pk) for pk in re.findall(r'name="_selected_action" value="(\d+)"', text(response))]


def text(response: Any) -> str:
    content: str = response.content.decode()
    return content


def ask(
    client: Client,
    action: str,
    ids: Iterable[int] = (),
    query: str = "",
    where: str = LIST,
    shown_at: str = "2999-01-01T00:00:00+00:00",
) -> Any:
    """Post an action on ticked rows, or on all pages without any; return the page that asks."""
    ticked = list(ids)
    data = {
        "action": action,
        "select_across": "0" if ticked else "1",
        "index": "0",
        "_selected_action": ticked or [0],
        "shown_at": shown_at,
    }
    return client.post(f"{where}?{query}", data, follow=True)


def answer(client: Client, asked: Any, reason: str = "tell why", **more: Any) -> Any:
    """Give the reason on a page that asks for it."""
    form = text(asked).partition('id="action-form"')[2].partition("</form>")[0]
    fields: dict[str, Any] = {}
    for name, value in re.findall(r'<input type="hidden" name="([^"]+)" value="([^"]*)"', form):
        fields.setdefault(name, []).append(unescape(value))
    where = asked.request["PATH_INFO"] + "?" + asked.request["QUERY_STRING"]
    return client.post(where, {**fields, "confirm": "1", "reason": reason, **more}, follow=True)


def told(page: Any) -> str:
    """Return what an operator is told above a page, and of a run what its page says."""
    messages = re.findall(r'<li class="(?:success|warning|error|info)">(.*?)</li>', text(page))
    if run := re.search(r'<dd id="run-state">([^<]*)</dd>', text(page)):
        messages += [run[1], *re.findall(r'<span id="run-changed">(\d+)</span>', text(page))]
        messages += [": ".join(pair) for pair in re.findall(
            r"<dt>(Left out, [^<]*)</dt><dd>(\d+)</dd>", text(page)
        )]  # fmt: skip
    return " ".join(map(unescape, messages))


def said(page: Any) -> str:
    """Return what a page that asks says it is for."""
    form = text(page).partition('id="content-main"')[2].partition("<form")[0]
    return " ".join(unescape(line) for line in re.findall("<(?:p|li)>(.*?)</(?:p|li)>", form))


def act(
    client: Client, action: str, ids: Iterable[int] = (), query: str = "", where: str = LIST
) -> str:
    """Do an action for a reason, once it is asked for; return what the user is told."""
    asked = ask(client, action, ids, query, where)
    if 'id="action-form"' not in text(asked):
        return told(asked)
    return told(answer(client, asked))


# ------------------------------------------------------------------------------------- the list


@pytest.mark.leaves_reserved
def test_list_says_the_status_in_words(operator: Client) -> None:
    future = UtcNow() + HOUR
    make(available_at=future)
    make(available_at=future, attempts=2)
    for status in Status:
        if status is not Status.RESERVED:
            make(status=status)
    make_reserved()
    Job.objects.filter(pk=make_reserved()).update(lease_until=UtcNow() - HOUR)
    page = text(operator.get(LIST))
    words = re.findall(r'class="leasequeue-status[^>]*>([^<]*)<', page)
    assert words == [
        *("reserved, lease expired", "reserved", "parked", "cancelled", "dead", "done", "ready"),
        *("retrying", "scheduled"),
    ]
    assert "2/5" in page


def test_list_shows_the_beginning_of_an_escaped_error(operator: Client) -> None:
    make(status=Status.DEAD, last_error="<script>alert(1)</script>" + "x" * 3000 + "end")
    page = text(operator.get(LIST))
    assert "&lt;script&gt;alert(1)&lt;/script&gt;xxx" in page
    assert "<script>alert" not in page
    assert "xend" not in page


def test_list_defers_json_and_asks_little(
    operator: Client, connection: BaseDatabaseWrapper
) -> None:
    make(90, status=Status.DEAD, payload={"secret": 1})
    with count_statements(connection) as statements:
        assert len(listed(operator)) == 90
    assert len(statements) <= 12
    assert not [sql for sql in statements if re.search('["`](payload|checkpoint)["`]', sql)]
    assert not [sql for sql in statements if "DISTINCT" in sql]


def test_list_begins_with_the_newest_and_sorts_by_id_alone(operator: Client) -> None:
    ids = make(3)
    assert listed(operator) == ids[::-1]
    assert listed(operator, "o=1") == ids
    # Whatever the URL asks for, there is no sorting without an index.
    for column in range(2, 8):
        assert listed(operator, f"o={column}") == ids[::-1]


def test_count_ends_at_the_limit(
    operator: Client, connection: BaseDatabaseWrapper, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paging, "COUNT_LIMIT", 3)
    monkeypatch.setattr(JobAdmin, "list_per_page", 2)
    ids = make(3)
    assert "3 jobs" in text(operator.get(LIST))
    make(2)
    with count_statements(connection) as statements:
        page = text(operator.get(LIST))
    assert "3+ jobs" in page
    assert all("LIMIT 4" in sql for sql in statements if "COUNT" in sql)
    # Older ones are reached by a filter or a search.
    assert listed(operator, "p=2") == ids[2:]
    assert operator.get(f"{LIST}?p=3").status_code == 302
    assert listed(operator, f"q={ids[0]}") == ids[:1]


def test_a_count_at_the_limit_says_so_where_digits_are_grouped(
    operator: Client, monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    monkeypatch.setattr(paging, "COUNT_LIMIT", 1000)
    settings.USE_THOUSAND_SEPARATOR = True
    make(1001)
    for query in ("", "status=ready"):
        page = text(operator.get(f"{LIST}?{query}"))
        assert re.search(r"1,?000\+ jobs", page)
        assert not re.search(r",\d{1,2}\+", page)


@pytest.mark.parametrize("query", ["", "&p=2", "&o=1", "&o=1&p=2", "&all="])
def test_a_filtered_list_is_found_without_an_order(
    operator: Client,
    connection: BaseDatabaseWrapper,
    monkeypatch: pytest.MonkeyPatch,
    query: str,
) -> None:
    """A server that has to sort walks all the jobs that the filter leaves out, by their id."""
    monkeypatch.setattr(JobAdmin, "list_per_page", 2)
    ids = make(3, status=Status.DEAD)
    make(2)
    expected = ids if "o=1" in query else ids[::-1]
    if "all" not in query:
        expected = expected[2:] if "p=2" in query else expected[:2]
    with count_statements(connection) as statements:
        assert listed(operator, f"status=dead{query}") == expected
    lists = [sql for sql in statements if re.search("FROM .leasequeue_job. WHERE", sql)]
    assert len(lists) == 2
    assert "ORDER BY" not in lists[0] and "LIMIT" in lists[0]
    assert re.search(r"id. IN \(", lists[1])


@pytest.mark.parametrize("query", ["", "status=dead&"])
def test_all_of_too_many_is_a_page(
    operator: Client, monkeypatch: pytest.MonkeyPatch, query: str
) -> None:
    monkeypatch.setattr(JobAdmin, "list_per_page", 2)
    monkeypatch.setattr(JobAdmin, "list_max_show_all", 3)
    ids = make(4, status=Status.DEAD)
    assert listed(operator, f"{query}all=") == ids[:1:-1]


def test_a_filter_that_nothing_matches_is_asked_once(
    operator: Client, connection: BaseDatabaseWrapper
) -> None:
    make(3)
    with count_statements(connection) as statements:
        assert listed(operator, "status=dead") == []
    assert len([sql for sql in statements if re.search("FROM .leasequeue_job. WHERE", sql)]) == 1


@pytest.mark.parametrize("value", ["scheduled", "retrying"])
def test_later_jobs_are_looked_for_lane_by_lane(
    operator: Client, connection: BaseDatabaseWrapper, value: str
) -> None:
    """The index on the times begins with queue, status and priority."""
    later = {"available_at": UtcNow() + HOUR, "attempts": int(value == "retrying")}
    (mail,) = make(queue_name="mail", priority=7, **later)
    (bulk,) = make(queue_name="bulk", **later)
    make(queue_name="bulk")
    for query, expected in (("", [bulk, mail]), ("&queue=mail", [mail]), ("&queue=none", [])):
        with count_statements(connection) as statements:
            assert listed(operator, f"status={value}{query}") == expected
        lists = [sql for sql in statements if re.search("FROM .leasequeue_job. WHERE", sql)]
        assert all(re.search("priority. (IN|=)", sql) for sql in lists)


def test_later_jobs_of_too_many_lanes(operator: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(filters, "_MOST_LANES", 1)
    ids = [make(queue_name=name, available_at=UtcNow() + HOUR)[0] for name in ("a", "b")]
    assert listed(operator, "status=scheduled") == ids[::-1]


def test_no_facets(operator: Client) -> None:
    make()
    assert "_facets" not in text(operator.get(LIST))


# -------------------------------------------------------------------------- filters and search


@pytest.mark.leaves_reserved
def test_status_filter(operator: Client) -> None:
    future = UtcNow() + HOUR
    made = {
        "ready": make(),
        "scheduled": make(available_at=future),
        "retrying": make(available_at=future, attempts=1),
        **{
            status.value: make(status=status)
            for status in (Status.DONE, Status.DEAD, Status.CANCELLED, Status.PARKED)
        },
        "expired": [make_reserved()],
    }
    Job.objects.filter(pk__in=made["expired"]).update(lease_until=UtcNow() - HOUR)
    made["reserved"] = [make_reserved(), *made["expired"]]
    for value, ids in made.items():
        assert listed(operator, f"status={value}") == ids, value
    assert listed(operator, "status=nonsense") == []


def test_queue_and_type_filters(operator: Client) -> None:
    (mail,) = make(queue_name="mail", job_type="mail.send")
    (other,) = make(queue_name="Mail", job_type="<b>&mail.send")
    make(queue_name="über", job_type="x")
    assert queue_names("default") == ["Mail", "mail", "über"]
    assert listed(operator, "queue=mail") == [mail]
    assert listed(operator, "queue=Mail&status=ready") == [other]
    assert listed(operator, "type=mail.send") == [mail]
    assert listed(operator, "type=%3Cb%3E%26mail.send") == [other]
    assert listed(operator, "queue=nowhere") == listed(operator, "type=a%00b") == []
    assert listed(operator, "queue=a%00b") == []
    page = text(operator.get(LIST))
    # The choices, and each cell links to its name, known to the project or not.
    assert page.count('href="?queue=mail"') == 2
    assert page.count('href="?type=report.generate"') == 1
    assert 'href="?type=%3Cb%3E%26mail.send">&lt;b&gt;&amp;mail.send</a>' in page


def test_a_queue_and_a_type_of_very_many(
    operator: Client, connection: BaseDatabaseWrapper, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No index holds both: the newest of each status of the type are looked through."""
    monkeypatch.setattr(filters, "_WINDOW", 3)
    for queue, kind in (("a", "x"), ("b", "x"), ("a", "y"), ("a", "x"), ("b", "x"), ("a", "x")):
        enqueue(kind, queue=queue)
    enqueue("x", queue="c", delay=3600)
    dead = enqueue("x", queue="a").pk
    Job.objects.filter(pk=dead).update(status="dead")
    told = "only the newest 3 jobs of each status"
    with count_statements(connection) as statements:
        page = text(operator.get(f"{LIST}?queue=a&type=x"))
    assert len(statements) < 15
    assert page.count('name="_selected_action"') == 2 and told in page
    for query, shown in (("b&type=x", 2), ("c&type=x", 1), ("a&type=y", 1), ("z&type=x", 0)):
        page = text(operator.get(f"{LIST}?queue={query}"))
        assert page.count('name="_selected_action"') == shown, query
        assert told not in page, query
    page = text(operator.get(f"{LIST}?queue=a&type=x&status=dead"))
    assert page.count('name="_selected_action"') == 1 and told not in page
    assert len(listed(operator, "queue=c&type=x&status=scheduled")) == 1
    assert "0 jobs" in text(operator.get(f"{LIST}?queue=a&type=x&status=none"))


def test_queue_choices_are_bounded(operator: Client, connection: BaseDatabaseWrapper) -> None:
    for number in range(30):
        make(queue_name=f"q{number:02}")
    with count_statements(connection) as statements:
        page = text(operator.get(LIST))
    assert len(statements) <= 30
    assert page.count('href="?queue=q19"') == 2
    assert page.count('href="?queue=q20"') == 1


def test_search(operator: Client) -> None:
    first = enqueue("demo.work", key="monthly:acme ü", queue="a").pk
    second = enqueue("demo.work", key="monthly:acme ü", queue="b").pk
    lasting = enqueue("demo.work", key="until-finished", key_until="finished").pk
    numbered = enqueue("demo.work", key=str(first)).pk
    digest = digest_key("monthly:acme ü")
    assert listed(operator, f"q={second}") == [second]
    assert listed(operator, f"q=%23{second}") == [second]
    assert listed(operator, "q=monthly:acme ü") == [second, first]
    assert listed(operator, "q=monthly:acme ü&queue=a") == [first]
    assert listed(operator, f"q={digest.upper()}") == [second, first]
    assert listed(operator, "q=until-finished") == [lasting]
    assert listed(operator, f"q={first}") == [numbered, first]
    assert listed(operator, "q=monthly") == listed(operator, f"q={10**30}") == []


def test_search_reads_indexes_only(operator: Client, connection: BaseDatabaseWrapper) -> None:
    enqueue("demo.work", key="k")
    (pk,) = Job.objects.values_list("pk", flat=True)
    for number in range(25):
        make(queue_name=f"queue {number:02}")
    with count_statements(connection) as statements:
        assert listed(operator, "q=k") == [pk]
    assert len(statements) <= 16
    keyed = [sql.partition(" WHERE ")[2] for sql in statements if "_key" in sql]
    for condition in keyed:  # both unique indexes begin with their key: one statement each
        assert not ("idempotency_key" in condition and "live_key" in condition)


# --------------------------------------------------------------------------------- a job's page


def test_page_shows_the_payload_readable_and_escaped(operator: Client) -> None:
    payload = {"html": "</pre><script>alert(1)</script>", "name": "Zoë 😀", "n": [1, 2.5, None]}
    (pk,) = make(payload=payload, last_error="line one\n<i>two</i>", result={"ok": True})
    page = text(operator.get(f"{LIST}{pk}/change/"))
    assert "<script>alert" not in page
    assert "&lt;/pre&gt;&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert "\n  &quot;name&quot;: &quot;Zoë 😀&quot;" in page
    assert "<pre>line one\n&lt;i&gt;two&lt;/i&gt;</pre>" in page
    assert "&quot;ok&quot;: true" in page


def test_page_is_bounded_and_complete(operator: Client, connection: BaseDatabaseWrapper) -> None:
    (pk,) = make(payload={"a": 1}, leased_by="w:host:1:r", claims=120)
    JobAttempt.objects.bulk_create(
        JobAttempt(
            job_id=pk,
            number=number,
            token=number.to_bytes(16),
            worker=f"worker-{number}",
            started_at=UtcNow() - HOUR,
            outcome="failed",
            error_class="Boom",
            error_text="Boom: <b>",
            frames=["app.py:1 run", "app.py:<2> boom"],
        )
        for number in range(1, 121)
    )
    with count_statements(connection) as statements:
        page = text(operator.get(f"{LIST}{pk}/change/"))
    assert len(statements) <= 10
    assert re.findall(r"worker-(\d+)", page) == [str(number) for number in range(120, 20, -1)]
    assert "Older attempts are not shown." in page
    assert "3600." in page  # seconds from start to end
    assert "<summary>Boom: &lt;b&gt;</summary><pre>app.py:1 run\napp.py:&lt;2&gt; boom" in page
    assert "w:host:1:r" in page


@pytest.mark.leaves_reserved
def test_page_edits_nothing(operator: Client) -> None:
    pk = make_reserved()
    page = text(operator.get(f"{LIST}{pk}/change/"))
    assert "<input" not in page.partition('id="job_form"')[2].partition("</form>")[0].replace(
        '<input type="hidden"', ""
    )
    change = {"status": "done", "priority": "7", "_save": "Save"}
    assert operator.post(f"{LIST}{pk}/change/", change).status_code == 403
    assert operator.post(f"{LIST}{pk}/delete/", {"post": "yes"}).status_code == 403
    assert operator.post(f"{LIST}add/", {"job_type": "x"}).status_code == 403
    assert Job.objects.get().status == Status.RESERVED
    assert operator.get(f"{LIST}{pk + 1}/change/").status_code == 302
    assert operator.get(f"{LIST}{10**30}/change/").status_code == 302


def test_page_is_read_only_even_if_a_subclass_permits_changes(
    operator: Client, rf: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(JobAdmin, "has_change_permission", lambda *args: True)
    (pk,) = make(status=Status.DEAD)
    operator.post(f"{LIST}{pk}/change/", {"status": "done", "payload": "{}", "_save": "Save"})
    assert statuses([pk]) == ["dead"]


@pytest.mark.parametrize("junk", ["{bad", "[1e400]", "9" * 5000, "NaN"])
def test_json_that_python_refuses_is_shown_as_it_is(junk: str) -> None:
    assert display.pretty_json(junk) == f"<pre>{junk}</pre>"


@pytest.mark.parametrize(
    "huge", ['"' + "x" * 200_000 + '"', "[0" + ", 1" * 100_000 + "]", "[" * 10**6]
)
def test_huge_json_is_cut(huge: str) -> None:
    shown = str(display.pretty_json(huge))
    assert shown.endswith("</pre><p>Only the first 100000 characters are shown.</p>")
    assert len(shown) < 101_000


@pytest.mark.parametrize("depth", [500, 5_000, 40_000])
def test_deep_json_stays_small(depth: int) -> None:
    assert len(str(display.pretty_json("[" * depth + "]" * depth))) < 101_000


@pytest.mark.parametrize("use_tz", [True, False])
def test_times_are_in_the_readers_zone(operator: Client, settings: Any, use_tz: bool) -> None:
    settings.USE_TZ = use_tz
    settings.TIME_ZONE = "Europe/Vienna"
    (pk,) = make(available_at=datetime(2001, 7, 1, 22, 30, tzinfo=UTC))
    assert "2001-07-02 00:30:00 CEST" in text(operator.get(LIST))
    assert "2001-07-02 00:30:00 CEST" in text(operator.get(f"{LIST}{pk}/change/"))
    assert listed(operator, "status=ready") == [pk]


# --------------------------------------------------------------------------------------- actions


@pytest.mark.leaves_reserved
def test_requeue_counts_what_really_changes(operator: Client) -> None:
    dead = make(2, status=Status.DEAD, attempts=5, crashes=1, claims=5, last_error="Boom")
    (cancelled,) = make(status=Status.CANCELLED)
    (done,) = make(status=Status.DONE)
    reserved = make_reserved()
    ids = [*dead, cancelled, done, reserved]
    asked = ask(operator, "requeue_jobs", [*ids, 10**9])
    assert said(asked).startswith(
        "3 jobs would be ready again, with a fresh allowance of attempts: 1 cancelled, 2 dead. "
        "Left out: 1 done, 1 gone, 1 reserved. What came up or died after"
    )
    assert not BulkRun.objects.exists()
    assert told(answer(operator, asked)) == "finished 3"
    assert statuses(ids) == ["ready", "ready", "ready", "done", "reserved"]
    job = Job.objects.get(pk=dead[0])
    assert (job.attempts, job.crashes, job.claims) == (0, 0, 5)
    entry, run = LogEntry.objects.get(), BulkRun.objects.get()
    assert (entry.object_id, entry.change_message) == (str(run.pk), "Started: tell why")
    assert (entry.user.get_username(), run.by, run.changed) == ("root", "root", 3)


def test_an_action_needs_a_reason_that_can_be_logged(operator: Client) -> None:
    ids = make(3, status=Status.DEAD)
    asked = ask(operator, "requeue_jobs", ids)
    for reason in ("", " ", "a\0b", "two\nlines", "x" * 501):
        asked = answer(operator, asked, reason)
        assert 'class="errorlist"' in text(asked), reason
        assert said(asked).startswith("3 jobs would be")
    assert statuses(ids) == ["dead"] * 3
    assert not BulkRun.objects.exists() and not LogEntry.objects.exists()
    assert told(answer(operator, asked, "x" * 500)) == "finished 3"


@pytest.mark.parametrize("query", ["", "status=dead"])
def test_a_second_identical_post_changes_nothing_and_says_so(operator: Client, query: str) -> None:
    ids = make(3, status=Status.DEAD)
    asked = ask(operator, "requeue_jobs", ids, query)
    assert told(answer(operator, asked)) == "finished 3"
    before = Job.objects.get(pk=ids[0]).updated_at
    assert "root had confirmed the same" in told(answer(operator, asked))
    Job.objects.filter(pk=ids[1]).update(status="dead", finished_at=UtcNow())
    assert "root had confirmed the same" in told(answer(operator, asked))
    assert statuses(ids) == ["ready", "dead", "ready"]
    assert Job.objects.get(pk=ids[0]).updated_at == before
    assert LogEntry.objects.count() == BulkRun.objects.count() == 1


def test_two_operators_at_once(operator: Client, connection: BaseDatabaseWrapper) -> None:
    ids = make(300, status=Status.DEAD)
    other = logged_in(User.objects.create_superuser("second", password="x"))
    asked = [ask(client, "requeue_jobs", ids) for client in (operator, other)]
    start = threading.Barrier(2)
    found: list[str] = []

    def press(client: Client, page: Any) -> None:
        start.wait(10)
        try:
            found.append(told(answer(client, page)))
        finally:
            connections.close_all()

    rival = threading.Thread(target=press, args=[other, asked[1]])
    rival.start()
    press(operator, asked[0])
    rival.join(60)
    assert sorted("confirmed the same" in one for one in found) == [False, True], found
    assert BulkRun.objects.get().changed == 300
    assert LogEntry.objects.count() == 1


def test_all_pages_of_a_filter(operator: Client, connection: BaseDatabaseWrapper) -> None:
    dead = make(12_000, status=Status.DEAD, attempts=5)
    kept = make(3, status=Status.DEAD, queue_name="other")
    query = "status=dead&queue=default"
    asked = ask(operator, "requeue_jobs", query=query)
    assert said(asked).startswith("12000 jobs would be ready again")
    with count_statements(connection) as statements:
        page = answer(operator, asked)
        while 'data-carries="1"' in text(page) and "running" in told(page):
            page = operator.post(f"{RUNS}{BulkRun.objects.get().pk}/go/", follow=True)
    assert told(page).endswith("finished 12000")
    assert set(statuses(dead)) == {"ready"}
    assert statuses(kept) == ["dead"] * 3
    assert LogEntry.objects.count() == 1
    assert max(sql.count("%s") for sql in statements) <= 2000  # no IN() of thousands
    assert "0 jobs would be ready again" in said(ask(operator, "requeue_jobs", query=query))


def test_a_run_of_the_list_and_another_page_of_it_do_not_collide(
    operator: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run's open page, and a command line, may carry on what the list has just begun."""
    ids = make(30, status=Status.DEAD)
    monkeypatch.setattr(bulk_plan, "CHUNK", 3)
    monkeypatch.setattr(beginning, "STEP_SECONDS", 0)

    def raced(connection: BaseDatabaseWrapper, run_id: int, *, seconds: float) -> None:
        bulk.go_on(run_id)  # another process brings it to its end first
        step(connection, run_id, seconds=seconds)

    monkeypatch.setattr(beginning, "step", raced)
    assert act(operator, "requeue_jobs", ids) == "finished 30"
    assert set(statuses(ids)) == {"ready"}
    assert list(LogEntry.objects.values_list("change_message", flat=True)) == ["Started: tell why"]


def test_never_more_than_the_question_said(operator: Client) -> None:
    ids = make(3, status=Status.DEAD)
    asked = ask(operator, "requeue_jobs", query="status=dead")
    # As if they had been committed, and had died, before the list was shown.
    older = make(2, status=Status.DEAD, created_at="2001-01-01 00:00:00+00:00")
    assert told(answer(operator, asked)) == "finished 3"
    assert len([one for one in statuses([*ids, *older]) if one == "ready"]) == 3


def test_all_pages_without_a_filter_say_what_is_left_out(
    operator: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paging, "COUNT_LIMIT", 4)
    make(2, status=Status.DEAD)
    make(3)
    make(5, status=Status.DONE)
    assert "2 dead. Left out: 4+ done, 3 ready." in said(ask(operator, "requeue_jobs"))


def test_one_action_takes_the_oldest_up_to_a_limit(
    operator: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("bulk", "listed"):
        monkeypatch.setattr(f"django_leasequeue.admin.{module}.MOST", 2)
    ids = make(3, status=Status.DEAD)
    asked = ask(operator, "requeue_jobs")
    assert "2 is the most at once: these are the oldest." in said(asked)
    assert told(answer(operator, asked)) == "finished 2"
    assert statuses(ids) == ["ready", "ready", "dead"]
    assert act(operator, "requeue_jobs") == "finished 1"


def test_a_job_whose_key_is_taken_is_left_out(operator: Client) -> None:
    old = enqueue("demo.work", key="k", key_until="finished")
    operate.cancel(old)
    enqueue("demo.work", key="k", key_until="finished")
    told_of = act(operator, "requeue_jobs", [old.pk])
    assert told_of == "finished 0 Left out, another job has their key: 1"


def test_cancel(operator: Client) -> None:
    running = make_reserved()
    (ready,), (done,) = make(), make(status=Status.DONE)
    asked = ask(operator, "cancel_jobs", [running, ready, done])
    assert said(asked).startswith(
        "2 jobs would be cancelled: 1 ready, 1 reserved. Left out: 1 done."
    )
    assert "Those that run are stopped" in said(asked)
    assert told(answer(operator, asked)) == "finished 2"
    assert statuses([running, ready, done]) == ["cancelled", "cancelled", "done"]
    assert JobAttempt.objects.get().outcome == "cancelled"


@pytest.mark.parametrize("query", ["status=dead", ""])
@pytest.mark.parametrize("across", [True, False])
def test_what_was_shown_dead_and_is_ready_again_is_not_cancelled(
    operator: Client, monkeypatch: pytest.MonkeyPatch, query: str, across: bool
) -> None:
    """Somebody else requeues it, between the selection and the run's own look at it."""
    ids = make(3, status=Status.DEAD)
    asked = ask(operator, "cancel_jobs", [] if across else ids, query)

    def raced(*args: Any, **options: Any) -> BulkRun:
        operate.requeue(ids[0])
        return bulk.start(*args, **options)

    monkeypatch.setattr(beginning, "start", raced)
    assert told(answer(operator, asked)) == "finished 2 Left out, no longer in that status: 1"
    assert statuses(ids) == ["ready", "cancelled", "cancelled"]


@pytest.mark.parametrize("word", ["ready", "scheduled", "retrying", "expired", "parked"])
def test_an_action_is_for_the_statuses_of_the_filter(operator: Client, word: str) -> None:
    future = UtcNow() + HOUR
    ids = {
        "ready": make()[0],
        "scheduled": make(available_at=future)[0],
        "retrying": make(available_at=future, attempts=1)[0],
        "expired": make_reserved(),
        "parked": make(status=Status.PARKED)[0],
        "dead": make(status=Status.DEAD)[0],
    }
    Job.objects.filter(pk=ids["expired"]).update(lease_until=UtcNow() - HOUR)
    assert act(operator, "cancel_jobs", query=f"status={word}") == "finished 1"
    (changed,) = Job.objects.filter(status="cancelled").values_list("pk", flat=True)
    assert changed == ids[word]
    operate.cancel(ids.values())


def test_a_filters_status_is_the_runs(operator: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the list of waiting jobs was asked for does not stop one that runs by then."""
    waiting, begun = make(2)
    lease = {"lease_token": b"t" * 16, "lease_until": UtcNow() + HOUR, "attempts": 1, "claims": 1}

    def raced(*args: Any, **options: Any) -> BulkRun:
        Job.objects.filter(pk=begun).update(status=Status.RESERVED, **lease)
        return bulk.start(*args, **options)

    monkeypatch.setattr(beginning, "start", raced)
    left = "Left out, no longer in that status: 1"
    assert act(operator, "cancel_jobs", query="status=ready") == f"finished 1 {left}"
    assert statuses([waiting, begun]) == ["cancelled", "reserved"]
    operate.cancel(begun)


def test_a_job_that_began_to_run_meanwhile_is_cancelled_all_the_same(operator: Client) -> None:
    (pk,) = make()
    asked = ask(operator, "cancel_jobs", [pk])
    lease = {"lease_token": b"t" * 16, "lease_until": UtcNow() + HOUR, "attempts": 1, "claims": 1}
    Job.objects.filter(pk=pk).update(status=Status.RESERVED, **lease)
    assert told(answer(operator, asked)) == "finished 1"
    assert JobAttempt.objects.get().outcome == "cancelled"


@pytest.mark.parametrize("shown_at", ["", "garbled", "2026-01-01"])
def test_a_list_that_does_not_say_when_it_was_shown(operator: Client, shown_at: str) -> None:
    ids = make(2, status=Status.DEAD)
    for action in ("requeue_jobs", "cancel_jobs"):
        assert "does not say when" in told(ask(operator, action, ids, shown_at=shown_at))
        asked = ask(operator, action, ids)
        assert "does not say when" in told(answer(operator, asked, shown_at=shown_at))
    assert statuses(ids) == ["dead"] * 2
    assert not BulkRun.objects.exists()


def test_another_lists_confirmation_is_none(operator: Client) -> None:
    ids = make(2, status=Status.DEAD)
    asked = ask(operator, "requeue_jobs", ids[:1])
    page = answer(operator, asked, _selected_action=ids)
    assert "another list" in text(page)
    page = answer(operator, asked, token="x")
    assert "another list" in text(page)
    assert statuses(ids) == ["dead"] * 2


def test_what_no_list_has_is_refused(operator: Client) -> None:
    for junk in ("x", "-1", "1" * 40, "1\0"):
        data = {"action": "requeue_jobs", "index": "0", "_selected_action": junk}
        page = operator.post(LIST, {**data, "shown_at": "2999-01-01T00:00:00Z"}, follow=True)
        assert "no rows of this list" in told(page)


def test_actions_commit_chunk_by_chunk_under_atomic_requests(
    operator: Client, connection: BaseDatabaseWrapper, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = make(401, status=Status.DEAD)
    monkeypatch.setitem(connection.settings_dict, "ATOMIC_REQUESTS", True)
    asked = ask(operator, "requeue_jobs", ids)
    with count_statements(connection) as statements:
        assert told(answer(operator, asked)) == "finished 401"
    assert len([sql for sql in statements if "UPDATE leasequeue_job " in sql]) == 3
    assert statements.count("COMMIT") >= 3


def test_nothing_ticked_and_no_get(operator: Client) -> None:
    ids = make(2, status=Status.DEAD)
    data: dict[str, Any] = {"action": "requeue_jobs", "select_across": "0", "index": "0"}
    operator.post(LIST, data)
    operator.get(LIST, {**data, "_selected_action": ids})
    assert statuses(ids) == ["dead", "dead"]


# ----------------------------------------------------------------------------------- permissions


@pytest.mark.parametrize("action", ["requeue_jobs", "cancel_jobs", "pause_queues"])
def test_view_permission_alone_gives_no_action(queue_db: object, action: str) -> None:
    client = logged_in(user_with("view_job"))
    (pk,) = make(status=Status.DEAD)
    page = text(client.get(LIST))
    assert "demo.work" in page
    assert "_selected_action" not in page
    data = {"action": action, "index": "0", "select_across": "1", "_selected_action": [pk]}
    client.post(LIST, data)
    assert statuses([pk]) == ["dead"]
    assert not Queue.objects.exists()
    assert client.get(f"{LIST}{pk}/change/").status_code == 200
    assert client.post(f"{LIST}{pk}/change/", {"status": "ready"}).status_code == 403


def test_each_action_has_its_own_permission(queue_db: object) -> None:
    client = logged_in(user_with("view_job", "requeue_job"))
    (pk,) = make(status=Status.DEAD)
    assert act(client, "cancel_jobs", [pk]) == "No action selected."
    assert act(client, "pause_queues", [pk]) == "No action selected."
    assert statuses([pk]) == ["dead"]
    assert act(client, "requeue_jobs", [pk]) == "finished 1"


def test_no_permission_no_page(queue_db: object) -> None:
    client = logged_in(user_with())
    assert client.get(LIST).status_code == client.get(QUEUES).status_code == 403
    assert Client().get(LIST).status_code == 302


def test_action_needs_a_csrf_token(operator: Client) -> None:
    ids = make(status=Status.DEAD)
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(User.objects.get())
    data = {"action": "requeue_jobs", "index": "0", "select_across": "0", "_selected_action": ids}
    assert strict.post(LIST, data).status_code == 403
    assert statuses(ids) == ["dead"]


# ---------------------------------------------------------------------------------------- queues


def test_pausing_the_queues_of_jobs(operator: Client) -> None:
    ids = make(2, queue_name="mail") + make(queue_name="other")
    make(queue_name="untouched")
    asked = ask(operator, "pause_queues", ids)
    assert said(asked).endswith("mail other")
    assert not Queue.objects.exists()
    assert told(answer(operator, asked, "")) == "" and not Queue.objects.exists()
    assert told(answer(operator, asked)) == "Paused: mail, other."
    assert told(answer(operator, asked)) == "No queue was paused."
    queues = {queue.name: queue for queue in Queue.objects.all()}
    assert set(queues) == {"mail", "other"}
    assert (queues["mail"].paused_by, queues["mail"].pause_reason) == ("root", "tell why")
    mail = [queues["mail"].pk]
    messages = list(LogEntry.objects.order_by("pk").values_list("object_repr", "change_message"))
    assert messages == [("mail", "Paused: tell why"), ("other", "Paused: tell why")]
    assert operator.get(f"{QUEUES}{mail[0]}/change/").status_code == 200
    assert operator.post(f"{QUEUES}add/", {"name": "x"}).status_code == 403
    assert operator.post(f"{QUEUES}{mail[0]}/change/", {"name": "x"}).status_code == 403


def test_pausing_is_for_the_queues_that_were_named(operator: Client) -> None:
    make(queue_name="mail")
    asked = ask(operator, "pause_queues")
    make(queue_name="later")
    assert told(answer(operator, asked)) == "Paused: mail."


def test_a_queue_that_cannot_be_paused_is_said(operator: Client) -> None:
    """Plain SQL can put in a job whose queue has no name."""
    ids = [*make(queue_name=""), *make(queue_name="mail")]
    assert act(operator, "pause_queues", ids) == (
        "No queue can have that name: (empty). Paused: mail."
    )
    asked = ask(operator, "pause_queues", ids)
    bad = answer(operator, asked, queue=["a\0b", "x" * 65])
    assert told(bad).count("No queue can have that name") == 2
    assert list(Queue.objects.values_list("name", flat=True)) == ["mail"]


def test_a_pause_and_its_entry_are_written_together(
    operator: Client, connection: BaseDatabaseWrapper
) -> None:
    """What was paused before the database refused has its entry, and the others are not."""
    ids = [make(queue_name=name)[0] for name in "abc"]
    asked = ask(operator, "pause_queues", ids)
    entries = []

    def refuse(run: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        if "INSERT INTO" in sql and "django_admin_log" in sql:
            entries.append(sql)
            if len(entries) > 1:
                raise OperationalError(1290, "read only")
        return run(sql, params, many, context)

    with connection.execute_wrapper(refuse):
        assert answer(operator, asked).status_code == 503
    paused = Queue.objects.filter(paused_at__isnull=False)
    assert list(paused.values_list("name", flat=True)) == ["a"]
    assert list(LogEntry.objects.values_list("object_repr", flat=True)) == ["a"]


def test_pausing_reaches_the_queue_of_each_ticked_job(operator: Client) -> None:
    for number in range(120):
        make(queue_name=f"q{number:03}")
    ids = make(queue_name="zz")
    assert act(operator, "pause_queues", ids) == "Paused: zz."


def test_pausing_all_pages_says_where_it_ended(
    operator: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(actions, "_MOST_QUEUES", 3)
    for name in "abcd":
        make(queue_name=name)
    asked = ask(operator, "pause_queues")
    assert "Queues after c were not looked at: filter by one of them." in said(asked)
    assert told(answer(operator, asked)) == "Paused: a, b, c."
    assert act(operator, "pause_queues", query="queue=d") == "Paused: d."


# ----------------------------------------------------------------------------------- other sites


@pytest.mark.urls(__name__)
def test_custom_admin_site(operator: Client) -> None:
    (pk,) = make(status=Status.DEAD)
    assert "demo.work" in text(operator.get("/ops/leasequeue/job/"))
    assert operator.get(f"/ops/leasequeue/job/{pk}/change/").status_code == 200
    done = act(operator, "requeue_jobs", [pk], where="/ops/leasequeue/job/")
    run = BulkRun.objects.get()  # this site has no pages of runs
    assert done == f"Bulk run {run.pk}: 1 changed so far, finished."
    assert operator.get("/ops/").status_code == 200
    assert operator.get("/ops/leasequeue/queue/").status_code == 200


def test_project_without_the_admin_loads() -> None:
    program = """
import sys, django
from django.conf import settings
settings.configure(
    INSTALLED_APPS=["django_leasequeue"],
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}},
)
django.setup()
import django_leasequeue, django_leasequeue.models
from django.core.management import call_command
call_command("check")
assert not [name for name in sys.modules if name.startswith("django_leasequeue.admin")]
assert "django.contrib.admin" not in sys.modules
"""
    subprocess.run([sys.executable, "-W", "error", "-c", program], check=True, timeout=60)
