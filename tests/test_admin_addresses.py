"""Every admin address: who may ask it, that a GET changes nothing, that what it shows is text."""

from __future__ import annotations

import copy
import json
import re
from typing import Any

import pytest
from django.apps import apps
from django.contrib import admin
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Permission, User
from django.db import OperationalError
from django.db.backends.base.base import BaseDatabaseWrapper
from django.http import HttpRequest
from django.test import Client
from django.urls import path

from django_leasequeue import add_schedule
from django_leasequeue.admin import (
    BulkRunAdmin,
    DeadGroupAdmin,
    JobAdmin,
    QueueAdmin,
    ScheduleAdmin,
    WorkerAdmin,
)
from django_leasequeue.models import BulkRun, DeadGroup, Job, Queue, Schedule, Worker
from tests.admin_pages import FINGERPRINT, Address, addresses, arrange
from tests.core.arrange import run as execute
from tests.test_admin import answer, ask, logged_in, text, user_with
from tests.test_admin_triage import no_entries, shown

# A site of a project's own, under another name, with another index, below a prefix.
ops = admin.AdminSite(name="backoffice")
ops.index_title = "Back office"
for model, page in {
    Job: JobAdmin,
    DeadGroup: DeadGroupAdmin,
    BulkRun: BulkRunAdmin,
    Queue: QueueAdmin,
    Worker: WorkerAdmin,
    Schedule: ScheduleAdmin,
}.items():
    ops.register(model, page)
urlpatterns = [path("some/where/ops/", ops.urls)]

ALL = (
    *("view_job", "requeue_job", "cancel_job", "sign_job", "view_payload", "edit_payload"),
    *("view_queue", "pause_queue", "view_worker", "drain_worker"),
    *("view_bulkrun", "view_deadgroup", "change_deadgroup"),
)


@pytest.fixture
def operator(queue_db: BaseDatabaseWrapper) -> Client:
    return logged_in(User.objects.create_superuser("root", password="x"))


def rows() -> dict[str, list[Any]]:
    """Return all that the queue's tables and the log hold."""
    models: list[Any] = [*apps.get_app_config("leasequeue").get_models(), LogEntry]
    return {model.__name__: list(model.objects.order_by("pk").values()) for model in models}


# ------------------------------------------------------------------------------- permissions


def test_each_address_needs_its_permissions(queue_db: object) -> None:
    arrange()
    user = user_with(*ALL)
    client = logged_in(user)
    table = addresses()
    before = rows()
    for address in table:
        assert address.ask(client).status_code in (200, 302), address
    for missing in ALL:
        permissions = Permission.objects.filter(content_type__app_label="leasequeue")
        user.user_permissions.set(permissions.filter(codename__in={*ALL} - {missing}))
        for address in table:
            refused = address.ask(client).status_code == 403
            assert refused == (missing in address.needs), (missing, address)
    assert rows() == before  # without a reason nothing is done


def test_no_other_permission_is_needed(queue_db: object) -> None:
    arrange()
    user = user_with()
    client = logged_in(user)
    for address in addresses():
        user.user_permissions.clear()
        assert address.ask(client).status_code == 403, address
        user.user_permissions.set(Permission.objects.filter(codename__in=address.needs))
        assert address.ask(client).status_code in (200, 302), address


@pytest.mark.parametrize("codename", ["view_bulkrun", "requeue_job", "cancel_job"])
def test_runs_are_watched_with_any_of_three(queue_db: object, codename: str) -> None:
    arrange()
    run = BulkRun.objects.get()
    own = f"/admin/leasequeue/bulkrun/{run.pk}/"
    pages = ["/admin/leasequeue/bulkrun/", f"{own}change/", f"{own}progress/"]
    user = user_with(codename)
    client = logged_in(user)
    before = rows()
    assert [client.get(page).status_code for page in pages] == [200] * 3
    assert client.post(pages[-1]).status_code == 405 and rows() == before
    user.user_permissions.clear()
    assert [client.get(page).status_code for page in pages] == [403] * 3


def test_nobody_is_sent_to_the_login_page_and_a_strange_origin_is_refused(
    operator: Client,
) -> None:
    """An expired session, in the middle of whatever it was."""
    arrange()
    before = rows()
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(User.objects.get())
    for address in addresses():
        answer = address.ask(Client(), reason="x", job="1")
        assert answer.status_code == 302 and "/login/" in answer.headers["Location"], address
        if address.posts:
            assert address.ask(strict, reason="x").status_code == 403, address
    assert rows() == before


# ------------------------------------------------------------------------------- GET and POST


def test_a_field_without_a_name_is_the_id(operator: Client) -> None:
    names = named()
    for row in ("job/{job}/change", "queue/{queue}/change", "schedule/{schedule}/delete"):
        names["queue"] = Queue.objects.get().pk
        address = f"/admin/leasequeue/{row.format(**names)}/?_to_field="
        assert operator.get(address).status_code == 200, address


def test_no_get_changes_anything(operator: Client) -> None:
    arrange()
    before = rows()
    for address in addresses():
        for extra in ("", "confirm=1&reason=x&hours=1&queue=plain&job=1&action=requeue_jobs"):
            glue = "&" if "?" in address.url else "?"
            answer = operator.get(f"{address.url}{glue}{extra}")
            # The list refuses fields that it does not know.
            assert answer.status_code in (200, 302, 400, 405), address
            assert (answer.status_code == 405) <= address.posts, address
    assert rows() == before


RULE = {"payload": "null", "every": "60", "timezone": "UTC", "catch_up": "latest"}
ACTIONS = {
    "requeue": ("job/{job}/act/requeue/", {"claims": "1", "status": "dead"}),
    "cancel": ("job/{job}/act/cancel/", {"claims": "1", "status": "dead"}),
    "requeue selected": ("deadgroup/requeue/selected/", {"job": "{job}", "shown_at": "{now}"}),
    "cancel selected": ("deadgroup/cancel/selected/", {"job": "{job}", "shown_at": "{now}"}),
    "note": (f"deadgroup/group/note/?fingerprint={FINGERPRINT}", {"note": "tell why"}),
    "snooze": (f"deadgroup/group/snooze/?fingerprint={FINGERPRINT}", {"hours": "1"}),
    "pause": ("queue/pause/", {"queue": "another"}),
    "resume": ("queue/resume/", {"queue": "plain"}),
    "drain": ("worker/{worker}/drain/", {"name": "plain"}),
    "carry on": ("bulkrun/{run}/go/", {}),
    "cancel a run": ("bulkrun/{run}/cancel/", {}),
    "payload": ("job/{job}/payload/", {"payload": '{{"new": 1}}'}),
    "add": ("schedule/add/", {**RULE, "name": "new", "job_type": "some.type"}),
    "edit": ("schedule/{schedule}/change/", {**RULE, "job_type": "some.type"}),
}
LISTED = {
    "requeue": ("job/", "requeue_jobs", "job"),
    "cancel": ("job/", "cancel_jobs", "job"),
    "pause": ("job/", "pause_queues", "other"),
    "enable": ("schedule/", "enable", "schedule"),
    "disable": ("schedule/", "disable", "running"),
    "run now": ("schedule/", "run_now", "schedule"),
    "delete": ("schedule/", "delete_selected", "schedule"),
}


def named() -> dict[str, Any]:
    """Arrange rows; return what the addresses and fields of actions name."""
    job = arrange()
    return {
        "job": job,
        "other": Job.objects.create(job_type="other", queue_name="other").pk,
        "run": BulkRun.objects.get().pk,
        "worker": Worker.objects.get().pk,
        "now": "2999-01-01T00:00:00+00:00",
        "schedule": add_schedule("a", "some.type", every=60, enabled=False).pk,
        "running": add_schedule("b", "some.type", every=60).pk,
    }


def do(client: Client, address: str, data: dict[str, str], names: dict[str, Any], why: str) -> Any:
    """Do one of ACTIONS for this reason."""
    fields = {name: value.format(**names) for name, value in data.items()}
    url = f"/admin/leasequeue/{address.format(**names)}"
    if address.endswith("payload/"):  # compared first
        fields |= shown(text(client.get(url)))
        fields |= shown(text(client.post(url, {**fields, "reason": "x"}))) | {"confirm": "1"}
    return client.post(url, {"reason": why, **fields}, follow=True)


@pytest.mark.parametrize(("address", "data"), ACTIONS.values(), ids=ACTIONS)
def test_every_action_leaves_an_entry_with_its_reason(
    operator: Client, address: str, data: dict[str, str]
) -> None:
    assert do(operator, address, data, named(), "tell why").status_code == 200
    (entry,) = LogEntry.objects.all()
    assert entry.change_message.endswith(": tell why")
    assert entry.user.get_username() == "root"


@pytest.mark.parametrize(("address", "action", "row"), LISTED.values(), ids=LISTED)
def test_every_action_of_a_list_leaves_an_entry_with_its_reason(
    operator: Client, address: str, action: str, row: str
) -> None:
    names = named()
    asked = ask(operator, action, [names[row]], where=f"/admin/leasequeue/{address}")
    assert not LogEntry.objects.exists()
    assert answer(operator, asked).status_code == 200
    (entry,) = LogEntry.objects.all()
    assert entry.change_message.endswith(": tell why")
    assert entry.user.get_username() == "root"


@pytest.mark.parametrize("name", [*ACTIONS, *(f"list: {name}" for name in LISTED)])
def test_without_its_entry_nothing_is_changed(
    operator: Client, connection: BaseDatabaseWrapper, name: str
) -> None:
    names, asked = named(), None
    if name.startswith("list: "):
        address, action, row = LISTED[name.removeprefix("list: ")]
        asked = ask(operator, action, [names[row]], where=f"/admin/leasequeue/{address}")
    before = rows()
    with connection.execute_wrapper(no_entries):
        if asked is not None:
            page = answer(operator, asked)
        else:
            page = do(operator, *ACTIONS[name], names, "tell why")
    assert page.status_code == 503
    after = rows()
    # A run that has not begun, and that nobody carries on without a reason.
    runs = [one["changed"] for one in after.pop("BulkRun")[len(before.pop("BulkRun")) :]]
    assert runs in ([], [0]) and after == before


BAD_REASONS = ("", " \t", "a\0b", "\x1b[2J", "two\nlines", "x" * 501)


@pytest.mark.parametrize(
    ("address", "data"),
    [one for name, one in ACTIONS.items() if name != "note"],
    ids=[name for name in ACTIONS if name != "note"],
)
def test_a_reason_that_cannot_be_logged_is_refused_first(
    operator: Client, address: str, data: dict[str, str]
) -> None:
    """PostgreSQL refuses a NUL in the log, once the action itself is committed."""
    names = named()
    before = rows()
    for reason in BAD_REASONS:
        page = do(operator, address, data, names, reason)
        assert page.status_code == 200
        assert re.search("Give |A reason is one line|at most 500", text(page)), reason
    assert rows() == before


@pytest.mark.parametrize(("address", "action", "row"), LISTED.values(), ids=LISTED)
def test_a_reason_of_a_list_that_cannot_be_logged_is_refused_first(
    operator: Client, address: str, action: str, row: str
) -> None:
    names = named()
    asked = ask(operator, action, [names[row]], where=f"/admin/leasequeue/{address}")
    before = rows()
    for reason in BAD_REASONS:
        page = answer(operator, asked, reason)
        assert page.status_code == 200
        assert re.search("Give |A reason is one line|at most 500", text(page)), reason
    assert rows() == before


# ------------------------------------------------------------------------------ hostile strings

HOSTILE = {
    "html": "</pre></textarea><img src=x onerror=alert(1)><script>alert(1)</script>\"'&amp;{{ 7 }}",
    "directions": "\u202e<b>gnp.exe\u2066\u200f",
    "controls": "".join(map(chr, [*range(1, 32), 127, 0x85, 0x2028])) + "<i>",
    "long": "<b>&" * 16_384,
}


@pytest.mark.parametrize("hostile", HOSTILE.values(), ids=HOSTILE)
def test_what_a_row_holds_is_text_on_every_page(operator: Client, hostile: str) -> None:
    pk = arrange(hostile)
    operator.post(f"/admin/leasequeue/job/{pk}/act/cancel/", {"reason": hostile[:500]})
    Job.objects.update(status="dead")
    run = BulkRun.objects.get().pk
    more = [
        Address(f"/admin/leasequeue/{page}", frozenset())
        for page in ("", "bulkrun/", f"bulkrun/{run}/change/", f"job/{pk}/change/?reveal=1")
    ]
    for address in [*addresses(), *more]:
        if address.posts:
            continue
        answer = operator.get(address.url)
        assert answer.status_code == 200, address
        page = text(answer)
        assert not re.search(r"<img src=x|<script>alert|<b>|<i>|</pre></text", page), address


def test_a_lone_surrogate_is_shown_as_json_writes_it(
    operator: Client, connection: BaseDatabaseWrapper
) -> None:
    """SQLite takes it from plain SQL; servers know that it is no text."""
    pk = arrange()
    bad = json.dumps({"text": "\ud800", "\udfff": 1})
    if connection.vendor != "sqlite":
        pytest.skip("only SQLite takes it")
    execute(connection, f"UPDATE leasequeue_job SET payload = '{bad}', result = '{bad}'")
    for page in ("change/", "payload/", "change/?reveal=1"):
        assert r"\ud800" in text(operator.get(f"/admin/leasequeue/job/{pk}/{page}"))
    assert operator.get("/admin/leasequeue/job/").status_code == 200


# ------------------------------------------------------------------------------- other sites


@pytest.mark.urls(__name__)
def test_every_page_works_on_a_site_of_the_projects_own(operator: Client) -> None:
    pk = arrange()
    root = "/some/where/ops/leasequeue/"
    run = BulkRun.objects.get().pk
    own = ("", "bulkrun/", f"bulkrun/{run}/change/", "schedule/", f"job/{pk}/change/")
    urls = [root + page for page in own] + ["/some/where/ops/"]
    urls += [address.url for address in addresses(root) if not address.posts]
    for url in urls:
        answer = operator.get(url)
        assert answer.status_code == 200, url
        assert not re.search('(href|action)="/admin/', text(answer)), url
    for address in addresses(root):
        if address.posts:
            answer = address.ask(operator)
            assert answer.status_code in (200, 302), address
            assert answer.headers.get("Location", root).startswith("/some/where/ops/"), address


# ----------------------------------------------------------------------------------- outages


def test_a_database_that_refuses_is_told_of_and_no_traceback(
    operator: Client, monkeypatch: pytest.MonkeyPatch, connection: BaseDatabaseWrapper
) -> None:
    """Once it is the queue's own tables that cannot be read or written."""
    arrange()
    run = BulkRun.objects.get().pk
    pages = [f"/admin/leasequeue/{page}" for page in ("bulkrun/", f"bulkrun/{run}/change/")]
    table = [*addresses(), *(Address(page, frozenset()) for page in pages)]
    before = rows()

    def refuse(run: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        if "leasequeue_" in sql:
            raise OperationalError(1290, "read only: secret")
        return run(sql, params, many, context)

    with connection.execute_wrapper(refuse):
        for address in table:
            answer = address.ask(operator, reason="x", hours="1", queue="plain", name="plain")
            assert answer.status_code in (302, 503), address
            assert (answer.status_code == 302) <= address.posts
            if answer.status_code == 503:
                page = text(answer)
                assert "did not answer" in page and "(OperationalError" in page
                assert "secret" not in page
        assert "(OperationalError" in text(operator.get("/admin/leasequeue/"))
    assert rows() == before


def who(request: HttpRequest) -> dict[str, str]:
    """What many a project gives to all its templates."""
    return {"who": request.user.get_username()}


def test_an_outage_with_sessions_in_the_database(
    operator: Client, connection: BaseDatabaseWrapper, settings: Any
) -> None:
    """Not even the user is known then: the page asks for nothing, after the first refusal."""
    settings.SESSION_SAVE_EVERY_REQUEST = True
    settings.TEMPLATES = copy.deepcopy(settings.TEMPLATES)
    settings.TEMPLATES[0]["OPTIONS"]["context_processors"].append(f"{__name__}.who")
    arrange()
    table = addresses()
    asked: list[str] = []

    def refuse(run: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        asked.append(sql)
        raise OperationalError(2003, "no route: secret")

    for address in table:
        asked.clear()
        with connection.execute_wrapper(refuse):
            answer = address.ask(operator, reason="x")
        assert answer.status_code == 503, address
        assert "did not answer" in text(answer) and "secret" not in text(answer)
        assert len(asked) == 1, (address, asked)
