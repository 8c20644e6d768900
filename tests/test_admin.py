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
from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.test import Client
from django.urls import path

from django_leasequeue import enqueue, enqueue_many
from django_leasequeue.admin import JobAdmin, QueueAdmin, actions, display, filters, paging
from django_leasequeue.admin.lookup import queue_names
from django_leasequeue.codec import digest_key
from django_leasequeue.core import operate
from django_leasequeue.core.clock import UtcNow
from django_leasequeue.models import Job, JobAttempt, Queue
from django_leasequeue.statuses import Status
from tests.statements import count_statements

# A site of a project's own, for the tests that set ROOT_URLCONF to this module.
ops = admin.AdminSite(name="ops")
ops.register(Job, JobAdmin)
ops.register(Queue, QueueAdmin)
urlpatterns = [path("admin/", admin.site.urls), path("ops/", ops.urls)]

LIST = "/admin/leasequeue/job/"
QUEUES = "/admin/leasequeue/queue/"
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


def act(
    client: Client, action: str, ids: Iterable[int] = (), query: str = "", where: str = LIST
) -> str:
    """Post an action on ticked rows, or on all pages without any; return what the user is told."""
    ticked = list(ids)
    data = {
        "action": action,
        "select_across": "0" if ticked else "1",
        "index": "0",
        "_selected_action": ticked or [0],
    }
    response = client.post(f"{where}?{query}", data, follow=True)
    assert [status for _url, status in response.redirect_chain] == [302], text(response)
    told = re.findall(r'<li class="(?:success|warning)">(.*?)</li>', text(response))
    return " ".join(map(unescape, told))


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
def test_requeue_counts_what_really_changed(operator: Client) -> None:
    dead = make(2, status=Status.DEAD, attempts=5, crashes=1, claims=5, last_error="Boom")
    (cancelled,) = make(status=Status.CANCELLED)
    (done,) = make(status=Status.DONE)
    reserved = make_reserved()
    ids = [*dead, cancelled, done, reserved]
    told = act(operator, "requeue_jobs", [*ids, 10**9])
    assert told == "3 jobs were requeued. Left out: 1 done, 1 gone, 1 reserved."
    assert statuses(ids) == ["ready", "ready", "ready", "done", "reserved"]
    job = Job.objects.get(pk=dead[0])
    assert (job.attempts, job.crashes, job.claims) == (0, 0, 5)
    entries = LogEntry.objects.order_by("object_id")
    assert sorted(int(entry.object_id or 0) for entry in entries) == [*dead, cancelled]
    assert {(e.object_repr, e.change_message, e.user.get_username()) for e in entries} == {
        (f"demo.work #{pk}", "Requeued", "root") for pk in [*dead, cancelled]
    }
    assert "Requeued" in text(operator.get(f"{LIST}{dead[0]}/history/"))


@pytest.mark.parametrize("query", ["", "status=dead"])
def test_a_second_identical_post_changes_nothing_and_says_so(operator: Client, query: str) -> None:
    ids = make(3, status=Status.DEAD)
    assert act(operator, "requeue_jobs", ids, query) == "3 jobs were requeued."
    before = Job.objects.get(pk=ids[0]).updated_at
    told = act(operator, "requeue_jobs", ids, query)
    assert told == "0 jobs were requeued. Left out: 3 ready."
    assert Job.objects.get(pk=ids[0]).updated_at == before
    assert LogEntry.objects.count() == 3


def test_two_operators_at_once(operator: Client, connection: BaseDatabaseWrapper) -> None:
    ids = make(300, status=Status.DEAD)
    other = logged_in(User.objects.create_superuser("second", password="x"))
    start = threading.Barrier(2)
    told: list[str] = []

    def press(client: Client) -> None:
        start.wait(10)
        try:
            told.append(act(client, "requeue_jobs", ids))
        finally:
            connections.close_all()

    rival = threading.Thread(target=press, args=[other])
    rival.start()
    start.wait(10)
    told.append(act(operator, "requeue_jobs", ids))
    rival.join(60)
    counts = [int(re.match(r"\d+", message)[0]) for message in told]  # type: ignore[index]
    assert sum(counts) == LogEntry.objects.count() == 300, told


def test_all_pages_of_a_filter(operator: Client, connection: BaseDatabaseWrapper) -> None:
    dead = make(12_000, status=Status.DEAD, attempts=5)
    kept = make(3, status=Status.DEAD, queue_name="other")
    with count_statements(connection) as statements:
        told = act(operator, "requeue_jobs", query="status=dead&queue=default")
    assert told == "12000 jobs were requeued."
    assert set(statuses(dead)) == {"ready"}
    assert statuses(kept) == ["dead"] * 3
    assert LogEntry.objects.count() == 12_000
    assert max(sql.count("%s") for sql in statements) <= 2000  # no IN() of thousands
    told = act(operator, "requeue_jobs", query="status=dead&queue=default")
    assert told == "0 jobs were requeued."


def test_all_pages_without_a_filter_say_what_was_left_out(
    operator: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paging, "COUNT_LIMIT", 4)
    make(2, status=Status.DEAD)
    make(3)
    make(5, status=Status.DONE)
    told = act(operator, "requeue_jobs")
    assert told == "2 jobs were requeued. Left out: 4+ done, 3 ready."


def test_one_action_takes_the_oldest_up_to_a_limit(
    operator: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("django_leasequeue.admin.bulk.MOST", 2)
    monkeypatch.setattr("django_leasequeue.admin.actions.MOST", 2)
    ids = make(3, status=Status.DEAD)
    told = act(operator, "requeue_jobs")
    assert told == "2 jobs were requeued. 2 is the most at once: repeat it for the others."
    assert statuses(ids) == ["ready", "ready", "dead"]
    assert act(operator, "requeue_jobs") == "1 job was requeued. Left out: 2 ready."


def test_a_job_whose_key_is_taken_is_left_out(operator: Client) -> None:
    old = enqueue("demo.work", key="k", key_until="finished")
    operate.cancel(old)
    enqueue("demo.work", key="k", key_until="finished")
    told = act(operator, "requeue_jobs", [old.pk])
    assert told == (
        "0 jobs were requeued. Left out: 1 cancelled but locked, or with a key that another "
        "job has."
    )


def test_cancel(operator: Client) -> None:
    running = make_reserved()
    (ready,), (done,) = make(), make(status=Status.DONE)
    told = act(operator, "cancel_jobs", [running, ready, done])
    assert told == "2 jobs were cancelled. Left out: 1 done."
    assert statuses([running, ready, done]) == ["cancelled", "cancelled", "done"]
    assert JobAttempt.objects.get().outcome == "cancelled"
    assert set(LogEntry.objects.values_list("change_message", flat=True)) == {"Cancelled"}


def test_actions_commit_chunk_by_chunk_under_atomic_requests(
    operator: Client, connection: BaseDatabaseWrapper, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(connection.settings_dict, "ATOMIC_REQUESTS", True)
    ids = make(401, status=Status.DEAD)
    with count_statements(connection) as statements:
        assert act(operator, "requeue_jobs", ids) == "401 jobs were requeued."
    assert statements.count("COMMIT") == 3


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
    assert act(client, "requeue_jobs", [pk]) == "1 job was requeued."


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
    assert act(operator, "pause_queues", ids) == "Paused: mail, other."
    assert act(operator, "pause_queues", ids) == "No queue was paused: all were."
    queues = {queue.name: queue for queue in Queue.objects.all()}
    assert set(queues) == {"mail", "other"}
    assert queues["mail"].paused_by == "root"
    mail = [queues["mail"].pk]
    messages = list(LogEntry.objects.order_by("pk").values_list("change_message", flat=True))
    assert messages == ["Paused", "Paused"]
    assert operator.get(f"{QUEUES}{mail[0]}/change/").status_code == 200
    assert operator.post(f"{QUEUES}add/", {"name": "x"}).status_code == 403
    assert operator.post(f"{QUEUES}{mail[0]}/change/", {"name": "x"}).status_code == 403


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
    told = act(operator, "pause_queues")
    assert told == "Paused: a, b, c. Queues after c were not looked at: filter by one of them."
    assert act(operator, "pause_queues", query="queue=d") == "Paused: d."


# ----------------------------------------------------------------------------------- other sites


@pytest.mark.urls(__name__)
def test_custom_admin_site(operator: Client) -> None:
    (pk,) = make(status=Status.DEAD)
    assert "demo.work" in text(operator.get("/ops/leasequeue/job/"))
    assert operator.get(f"/ops/leasequeue/job/{pk}/change/").status_code == 200
    told = act(operator, "requeue_jobs", [pk], where="/ops/leasequeue/job/")
    assert told == "1 job was requeued."
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
