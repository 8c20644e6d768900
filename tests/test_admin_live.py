"""The dashboard, the queues' and the workers' pages: what they show, change, ask and permit."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.contrib import admin
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Permission, User
from django.contrib.staticfiles import finders
from django.db.backends.base.base import BaseDatabaseWrapper
from django.test import Client
from django.urls import path
from django.utils.translation import override

from django_leasequeue import enqueue, pause
from django_leasequeue.admin import JobAdmin, QueueAdmin, standing
from django_leasequeue.admin.about import JobsAboutMixin
from django_leasequeue.admin.ages import age
from django_leasequeue.admin.charts import bars
from django_leasequeue.core import board, dives, recent
from django_leasequeue.core.clock import UtcNow
from django_leasequeue.core.presence import CurrentJob, Presence, announce, depart
from django_leasequeue.core.recent import Bucket
from django_leasequeue.models import Job, JobAttempt, Queue, Worker
from tests.statements import count_statements

# A site of a project's own, which does not show the workers.
ops = admin.AdminSite(name="ops")
ops.register(Job, JobAdmin)
ops.register(Queue, QueueAdmin)


class UserAdmin(JobsAboutMixin, admin.ModelAdmin):
    fields = ("username",)

    def job_keys(self, obj: Any) -> list[str | None]:
        return [f"welcome:{obj.pk}", obj.last_name, None]

    def job_ids(self, obj: Any) -> list[int | None]:
        return [int(obj.first_name) if obj.first_name else None]


ops.register(User, UserAdmin)
urlpatterns = [path("admin/", admin.site.urls), path("ops/", ops.urls)]

INDEX, QUEUES, WORKERS = (f"/admin/leasequeue/{name}" for name in ("", "queue/", "worker/"))
SECONDS = timedelta(seconds=1)


@pytest.fixture
def operator(queue_db: BaseDatabaseWrapper) -> Client:
    return logged_in(User.objects.create_superuser("root", password="x"))


def logged_in(user: User, **options: Any) -> Client:
    client = Client(**options)
    client.force_login(user)
    return client


def client_with(*codenames: str) -> Client:
    user = User.objects.create_user("someone", is_staff=True)
    permissions = Permission.objects.filter(
        content_type__app_label="leasequeue", codename__in=codenames
    )
    assert len(permissions) == len(codenames)
    user.user_permissions.set(permissions)
    return logged_in(user)


def text(client: Client, url: str) -> str:
    response = client.get(url)
    assert response.status_code == 200, response.headers
    content: str = response.content.decode()
    return content


def row_of(page: str, name: str) -> list[str]:
    """Return the cells of a table's row, without markup."""
    (found,) = (
        row for row in re.findall(r"<tr>(.*?)</tr>", page, re.DOTALL) if f'row">{name}<' in row
    )
    cells = re.findall(r"<t[dh][^>]*>(.*?)</t[dh]>", found, re.DOTALL)
    return [" ".join(re.sub(r"<[^>]+>", " ", cell).split()) for cell in cells]


def post(client: Client, url: str, **data: str) -> str:
    """Post, and return what the user is told."""
    response = client.post(url, data, follow=True)
    assert [status for _url, status in response.redirect_chain] == [302]
    told = re.findall(
        r'<li class="(?:success|warning|error)">(.*?)</li>', response.content.decode()
    )
    return " ".join(told)


def messages() -> list[tuple[str, str]]:
    return list(LogEntry.objects.order_by("pk").values_list("object_repr", "change_message"))


def busy(
    connection: BaseDatabaseWrapper,
    name: str = "mail:web-1:7:ab",
    jobs: int = 1,
    queues: tuple[str, ...] = ("mail", "slow"),
) -> Worker:
    since = datetime.now(UTC) - 200 * SECONDS
    held = tuple(CurrentJob(number + 1, "<b>report", since) for number in range(jobs))
    host, pid = name.split(":")[1:3]
    presence = Presence(name, host, int(pid), "1.2", queues, 3)
    return Worker.objects.get(pk=announce(connection, replace(presence, jobs=held)))


# ----------------------------------------------------------------------------------- the queues


def test_queues_with_their_figures(operator: Client) -> None:
    enqueue("demo.work", queue="mail")
    enqueue("demo.work", queue="mail", delay=3600)
    dead = enqueue("demo.work", queue="<i>").pk
    Job.objects.filter(pk=dead).update(status="dead", finished_at=UtcNow())
    Job.objects.filter(queue_name="mail").update(available_at=UtcNow() - 600 * SECONDS)
    for number, outcome in enumerate(("completed", "failed", "failed", "completed")):
        JobAttempt.objects.create(
            job_id=dead, number=number, token=bytes([number]) * 16, outcome=outcome
        )
    pause("empty", by="ann", reason="why & so")
    page = text(operator, QUEUES)
    mail = row_of(page, "mail")
    assert (mail[1:6], mail[6], mail[7:9]) == (["2", "0", "0", "0", "0"], "10 min", ["0", "-"])
    assert row_of(page, "&lt;i&gt;")[5:9] == ["1", "-", "4", "50 %"]
    assert "4 attempts, 2 of them failed" in page
    assert "0 done and 1 dead in the last hour" in page
    assert re.search(r"paused since .* by ann: why &amp; so", row_of(page, "empty")[-1])
    assert 'href="/admin/leasequeue/job/?status=ready&amp;queue=mail"' in page
    assert "<i>" not in page


def test_pages_of_queues(operator: Client) -> None:
    for number in range(23):
        enqueue("demo.work", queue=f"q{number:02}")
    page = text(operator, QUEUES)
    assert "q19" in page
    assert "q20" not in page
    assert 'href="?after=q19"' in page
    page = text(operator, f"{QUEUES}?after=q19")
    assert re.findall(r'row">(\w+)<', page) == ["q20", "q21", "q22"]
    assert f'data-leasequeue-live="{QUEUES}live/?after=q19"' in page
    assert re.findall(r'row">(\w+)<', text(operator, f"{QUEUES}live/?after=q21")) == ["q22"]


def test_queues_on_hold_without_jobs_are_on_some_page(operator: Client) -> None:
    names = [f"q{number:02}" for number in range(50)]
    for name in names:
        if name[-1] in "05":
            pause(name, by="ann")
        else:
            enqueue("demo.work", queue=name)
    for number in range(25):
        pause(f"r{number:02}", by="ann")
    names += [f"r{number:02}" for number in range(25)]
    found: list[str] = []
    url = QUEUES
    while url:
        page = text(operator, url)
        shown = re.findall(r'row">(\w+)<', page)
        assert len(shown) <= 20
        found += shown
        further = re.findall(r'href="(\?after=[^"]+)">More', page)
        url = f"{QUEUES}{further[0]}" if further else ""
    assert found == names


def test_pause_and_resume_with_a_reason(operator: Client) -> None:
    enqueue("demo.work", queue="mail")
    pausing, resuming = f"{QUEUES}pause/", f"{QUEUES}resume/"
    assert post(operator, pausing, queue="mail", reason=" ") == "Give a reason."
    assert not Queue.objects.exists()
    assert post(operator, pausing, queue="mail", reason="SMTP is down") == "Mail is paused."
    queue = Queue.objects.get()
    assert (queue.name, queue.paused_by, queue.pause_reason) == ("mail", "root", "SMTP is down")
    told = post(operator, pausing, queue="mail", reason="again")
    assert told == "Mail was paused already."
    assert Queue.objects.get().pause_reason == "SMTP is down"
    assert post(operator, resuming, queue="mail") == "Give a reason."
    assert Queue.objects.get().paused_at is not None
    assert post(operator, resuming, queue="mail", reason="fixed") == "Mail runs again."
    assert post(operator, resuming, queue="mail", reason="fixed") == "Mail was not paused."
    assert Queue.objects.get().paused_at is None
    assert messages() == [("mail", "Paused: SMTP is down"), ("mail", "Resumed: fixed")]
    history = text(operator, f"{QUEUES}{queue.pk}/history/")
    assert "SMTP is down" in history
    enqueue("demo.work", queue="never-paused")
    linked = re.findall(rf'href="({QUEUES}[^"]*history/)"', text(operator, QUEUES))
    assert linked == [f"{QUEUES}{queue.pk}/history/"]
    for name in ("", "a" * 65, "\0"):
        assert post(operator, pausing, queue=name, reason="x") == "No queue can have that name."


def test_pausing_is_posted_with_a_token_by_who_may(queue_db: object) -> None:
    client = client_with("view_queue")
    pause("mail")
    assert "<form" not in text(client, QUEUES).partition("<table")[2].partition("</table")[0]
    for name in ("pause", "resume"):
        data = {"queue": "mail", "reason": "x"}
        assert client.post(f"{QUEUES}{name}/", data).status_code == 403
    boss = User.objects.create_superuser("root", password="x")
    strict = logged_in(boss, enforce_csrf_checks=True)
    for name in ("pause", "resume"):
        assert strict.post(f"{QUEUES}{name}/", {"queue": "mail"}).status_code == 403
        assert logged_in(boss).get(f"{QUEUES}{name}/").status_code == 405
    assert Queue.objects.get().paused_at is not None
    assert not LogEntry.objects.exists()


# ---------------------------------------------------------------------------------- the workers


def test_workers_with_what_they_run(operator: Client, connection: BaseDatabaseWrapper) -> None:
    busy(connection, jobs=22)
    idle = busy(connection, "idle:web-2:8:cd", jobs=0)
    gone = busy(connection, "gone:web-3:9:ef", jobs=0)
    depart(connection, gone.pk, gone.name)
    Worker.objects.filter(pk=idle.pk).update(seen_at=UtcNow() - 130 * SECONDS)
    page = text(operator, WORKERS)
    cells = row_of(page, "mail:web-1:7:ab")
    assert cells[0] == "mail:web-1:7:ab host web-1, pid 7"
    assert cells[1].startswith("running Drain")
    assert cells[4].startswith("&lt;b&gt;report #1 for 3 min &lt;b&gt;report #2")
    assert cells[4].endswith("and 2 more")
    assert cells[5:] == ["mail, slow", "3", "1.2"]
    assert 'href="/admin/leasequeue/job/1/change/"' in page
    cells = row_of(page, "idle:web-2:8:cd")
    assert cells[1].startswith("not seen")
    assert (cells[2], cells[4]) == ("2 min ago", "none")
    assert "gone:web-3" not in page
    assert text(operator, f"{WORKERS}{idle.pk}/change/")


@pytest.mark.parametrize("junk", [{}, "x", [1, {"id": "x"}, {"id": 1, "type": "a", "since": 3}]])
def test_junk_in_a_workers_row(operator: Client, connection: Any, junk: Any) -> None:
    Worker.objects.filter(pk=busy(connection).pk).update(current_jobs=junk, queues=junk)
    assert row_of(text(operator, WORKERS), "mail:web-1:7:ab")[4] == "none"


def test_drain_from_afar(operator: Client, connection: BaseDatabaseWrapper) -> None:
    worker = busy(connection)
    url = f"{WORKERS}{worker.pk}/drain/"
    assert post(operator, url, name=worker.name) == "Give a reason."
    other = post(operator, url, name="another:web-1:7:ab", reason="deploy")
    assert other == "Nothing was asked: it was before, or the worker is gone."
    assert Worker.objects.get().drain_requested_at is None
    told = post(operator, url, name=worker.name, reason="deploy")
    assert told == f"Mail{worker.name[4:]} was asked to drain: it learns of it within seconds."
    assert post(operator, url, name=worker.name, reason="deploy") == other
    assert Worker.objects.get().drain_requested_at is not None
    assert messages() == [(worker.name, "Drained: deploy")]
    assert row_of(text(operator, WORKERS), worker.name)[1].startswith("draining")
    assert f'href="{WORKERS}{worker.pk}/history/"' in text(operator, WORKERS)
    assert operator.post(f"{WORKERS}{worker.pk + 1}/drain/").status_code == 404


def test_draining_has_its_own_permission(connection: BaseDatabaseWrapper, queue_db: Any) -> None:
    worker, client = busy(connection), client_with("view_worker")
    assert "Drain" not in text(client, WORKERS)
    url, data = f"{WORKERS}{worker.pk}/drain/", {"name": worker.name, "reason": "x"}
    assert client.post(url, data).status_code == 403
    boss = User.objects.create_superuser("root", password="x")
    assert logged_in(boss).get(url).status_code == 405
    assert logged_in(boss, enforce_csrf_checks=True).post(url, data).status_code == 403
    assert Worker.objects.get().drain_requested_at is None


# -------------------------------------------------------------------------------- the dashboard


def test_dashboard_says_what_needs_a_human(operator: Client, connection: Any) -> None:
    assert "Nothing needs you." in text(operator, INDEX)
    for status in ("dead", "dead", "parked", "ready"):
        pk = enqueue("demo.work", queue="mail").pk
        Job.objects.filter(pk=pk).update(status=status)
    pause("other")
    page = text(operator, INDEX)
    needs = re.findall(r"<li>(.*?)</li>", page.partition("leasequeue-needs")[2])[:4]
    assert needs == [
        "2 jobs are dead: look at them.",
        "1 job is parked: no worker here knows its type.",
        "1 queue is paused.",
        "Jobs are due, and no worker was seen within a minute.",
    ]
    assert "Job queue" in page  # the list of the app's models is there as well
    busy(connection)
    page = text(operator, f"{QUEUES}dashboard/")
    assert "no worker was seen" not in page
    assert "mail:web-1:7:ab: running" in page
    assert "<html" not in page


def needs(page: str) -> list[str]:
    listed = page.partition('class="leasequeue-needs"')[2].partition("</ul>")[0]
    return re.findall(r"<li>(.*?)</li>", listed)


def totals(page: str) -> dict[str, str]:
    pairs = re.findall(r"<dt>(\w+)</dt><dd>(?:<a[^>]*>)?([^<]*)<", page)
    return dict(pairs)


def test_what_needs_a_human_may_be_in_any_queue(operator: Client, connection: Any) -> None:
    """In a process that has just started, and has not found the queues yet, too."""
    dives._likely.clear()
    for number in range(25):
        enqueue("demo.work", queue=f"q{number:02}")
    Job.objects.filter(queue_name="q24").update(status="dead")
    Job.objects.filter(queue_name="q23").update(status="parked")
    Job.objects.filter(queue_name="q22").update(status="reserved", lease_until=UtcNow() + SECONDS)
    pause("q21")
    busy(connection, queues=("*",))
    page = text(operator, INDEX)
    Job.objects.filter(queue_name="q22").update(status="done")
    assert needs(page) == [
        "1 job is dead: look at it.",
        "1 job is parked: no worker here knows its type.",
        "1 queue is paused.",
    ]
    shown = totals(page)
    assert [shown[name] for name in ("reserved", "parked", "dead")] == ["1", "1", "1"]
    assert shown["ready"] == "20+"


def test_nothing_needs_a_human_only_where_all_was_looked_at(
    operator: Client, connection: Any
) -> None:
    for number in range(25):
        enqueue("demo.work", queue=f"q{number:02}")
    Job.objects.filter(queue_name__lt="q20").update(status="done")
    worker = busy(connection)
    page = text(operator, INDEX)
    assert needs(page) == []
    assert "Nothing needs you" not in page
    assert "Not all queues were looked at" in page
    Worker.objects.filter(pk=worker.pk).update(queues=["*"])
    page = text(operator, INDEX)
    assert "Nothing needs you." in page
    assert "Not all queues were looked at" not in page


def test_a_queue_whose_workers_are_gone(operator: Client, connection: Any) -> None:
    for queue in ("mail", "images", "held"):
        enqueue("demo.work", queue=queue)
    enqueue("demo.work", queue="later", delay=3600)
    pause("held")
    worker = busy(connection)
    told = "Jobs are due in the queue images, and no worker that is there takes them."
    page = text(operator, INDEX)
    assert needs(page) == ["1 queue is paused.", told]
    assert page.count("no worker takes it") == 1
    page = text(operator, QUEUES)
    assert row_of(page, "images")[-1].startswith("no worker takes it")
    for queue in ("mail", "later"):
        assert row_of(page, queue)[-1].startswith("runs")
    # One that drains claims no more.
    Worker.objects.filter(pk=worker.pk).update(drain_requested_at=UtcNow())
    told = "Jobs are due in the queues images, mail, and no worker that is there takes them."
    assert told in needs(text(operator, INDEX))
    Worker.objects.filter(pk=worker.pk).update(drain_requested_at=None, queues=["*"])
    assert needs(text(operator, INDEX)) == ["1 queue is paused."]
    Worker.objects.filter(pk=worker.pk).update(seen_at=UtcNow() - 61 * SECONDS)
    told = "Jobs are due, and no worker was seen within a minute."
    assert needs(text(operator, INDEX)) == ["1 queue is paused.", told]


@pytest.mark.parametrize("where", [INDEX, QUEUES, WORKERS, f"{QUEUES}dashboard/"])
def test_pages_ask_little(operator: Client, connection: BaseDatabaseWrapper, where: str) -> None:
    for number in range(25):
        enqueue("demo.work", queue=f"q{number:02}", priority=number % 4)
        busy(connection, f"w:host:{number}:ab")
    with count_statements(connection) as statements:
        text(operator, where)
    assert len(statements) < 15
    assert not [sql for sql in statements if "GROUP BY" in sql or "DISTINCT" in sql]


@pytest.mark.parametrize("where", [INDEX, QUEUES, WORKERS])
def test_pages_have_a_place_to_say_that_they_are_old(operator: Client, where: str) -> None:
    (place,) = re.findall(r"<p [^>]*data-leasequeue-trouble[^>]*>", text(operator, where))
    assert 'aria-live="polite"' in place and "hidden" not in place
    assert "data-away=" in place and "data-refused=" in place


@pytest.mark.parametrize("where", [INDEX, QUEUES, WORKERS])
def test_pages_hold_under_a_strict_content_policy(operator: Client, where: str) -> None:
    enqueue("demo.work")
    page = text(operator, where)
    for script in re.findall(r"<script[^>]*>", page):
        assert "src=" in script, script
    assert not re.search(r'<style|\sstyle=|\son\w+="|javascript:', page)
    assert "data-leasequeue-live=" in page
    for name in ("live.css", "live.js"):
        assert f"leasequeue/{name}" in page
        assert finders.find(f"leasequeue/{name}")


def test_dashboard_shows_what_the_user_may_see(connection: Any, queue_db: object) -> None:
    busy(connection)
    client = client_with("view_queue")
    page = text(client, INDEX)
    assert "The last hour" in page
    assert "mail:web-1:7:ab" not in page
    assert client.get(WORKERS).status_code == client.get(f"{WORKERS}live/").status_code == 403
    assert Client().get(f"{QUEUES}live/").status_code == 302


def test_without_permission_for_queues_there_is_no_dashboard(queue_db: object) -> None:
    client = client_with("view_job")
    assert "The last hour" not in text(client, INDEX)
    for url in (QUEUES, f"{QUEUES}live/", f"{QUEUES}dashboard/"):
        assert client.get(url).status_code == 403


def test_in_another_language_and_zone(operator: Client, settings: Any) -> None:
    settings.LANGUAGE_CODE, settings.TIME_ZONE, settings.USE_TZ = "de", "Asia/Tokyo", False
    settings.USE_THOUSAND_SEPARATOR = True
    pk = enqueue("demo.work").pk
    pause("default")
    with override("de"):
        for url in (INDEX, QUEUES, WORKERS):
            text(operator, url)
    assert Job.objects.filter(pk=pk).exists()


# --------------------------------------------------------------------------------- the figures


def test_bars_show_the_least_of_it_and_nothing_of_nothing() -> None:
    shown = bars([Bucket(1000, 1), Bucket(), Bucket(0, 500)], "<said>", height=11)
    rectangles = re.findall(
        r'class="leasequeue-(\w+)" x="(\d+)" y="(\d+)" .*? height="(\d+)"', shown
    )
    assert rectangles == [
        ("well", "0", "1", "9"),
        ("badly", "0", "0", "1"),
        ("badly", "20", "5", "5"),
    ]
    assert "&lt;said&gt;" in shown
    assert "<said>" not in shown
    assert "<rect" not in bars([Bucket()] * 12, "none")


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(-1, "0 s"), (119, "119 s"), (120, "2 min"), (7200, "2 h"), (3e5, "3 d")],
)
def test_ages(seconds: float, said: str) -> None:
    assert age(seconds) == said


def test_figures_at_a_cap_say_so(operator: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CAP", "_LEAST_CAP"):
        monkeypatch.setattr(board, name, 2)
    monkeypatch.setattr("django_leasequeue.admin.dashboard.CAP", 2)
    monkeypatch.setattr(standing, "BUCKET_CAP", 2)
    monkeypatch.setattr(recent, "BUCKET_CAP", 2)
    for number in range(3):
        pk = enqueue("demo.work", queue="a").pk
        Job.objects.filter(pk=pk).update(status="dead", finished_at=UtcNow())
        enqueue("demo.work", queue="ab"[number % 2])
    page = text(operator, INDEX)
    assert "2+ jobs are dead: look at them." in page
    assert "0 done and 2+ dead in the last hour" in page
    assert row_of(text(operator, QUEUES), "a")[1:6] == ["2+", "0", "0", "0", "2+"]


# ------------------------------------------------------------------------------- other sites


@pytest.mark.urls(__name__)
def test_custom_site_without_the_workers(operator: Client, connection: Any) -> None:
    busy(connection)
    enqueue("demo.work")
    page = text(operator, "/ops/leasequeue/")
    assert 'href="/ops/leasequeue/queue/"' in page
    assert 'data-leasequeue-live="/ops/leasequeue/queue/dashboard/"' in page
    assert "/admin/leasequeue" not in page
    assert "/admin/leasequeue" not in text(operator, "/ops/leasequeue/queue/")


@pytest.mark.urls(__name__)
def test_jobs_about_an_object(operator: Client, connection: BaseDatabaseWrapper) -> None:
    user = User.objects.get()
    url = f"/ops/auth/user/{user.pk}/change/"
    assert "Jobs about this" in text(operator, url)
    keyed = enqueue("demo.work", key=f"welcome:{user.pk}").pk
    lasting = enqueue("demo.work", key=f"welcome:{user.pk}", key_until="finished", queue="b").pk
    named = enqueue("demo.work").pk
    enqueue("demo.work", key="welcome:0")
    User.objects.update(first_name=str(named))
    with count_statements(connection) as statements:
        page = text(operator, url)
    shown = re.findall(r'<li><a href="/ops/leasequeue/job/(\d+)/change/">demo.work #\d+</a>', page)
    assert shown == [str(named), str(lasting), str(keyed)]
    asked = [sql for sql in statements if "leasequeue_job" in sql]
    # By key, by living key, by id: none asks for two of these at once.
    assert len(asked) == 3
    assert not [sql for sql in asked if " OR " in sql]
    assert operator.post(url, {"username": "renamed", "jobs_about": "x"}).status_code == 302
    assert User.objects.get().username == "renamed"
    assert "Jobs about this" not in text(operator, "/ops/auth/user/add/")


@pytest.mark.urls(__name__)
def test_jobs_about_an_object_are_for_who_may_see_jobs(operator: Client) -> None:
    client = client_with()
    someone = User.objects.get(username="someone")
    someone.user_permissions.add(Permission.objects.get(codename="change_user"))
    page = text(client, f"/ops/auth/user/{someone.pk}/change/")
    assert "username" in page
    assert "Jobs about this" not in page
