"""No address of the admin is left out: each is in the table of permissions, or in the one here."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.contrib import admin
from django.contrib.auth.models import Permission, User
from django.test import Client
from django.urls import URLResolver, resolve

from django_leasequeue.models import BulkRun, Job, Queue, Schedule, Worker
from tests.admin_pages import addresses, arrange
from tests.test_admin import logged_in, user_with
from tests.test_admin_addresses import rows

ROOT = "/admin/leasequeue/"
#: Django's own pages; what is asked for is any one of these permissions, for "" of nobody.
OTHERS = {
    **{f"{model}_{page}": {""} for model in ("job", "queue", "worker", "bulkrun")
       for page in ("add", "delete")},
    **{f"bulkrun_{page}": {"view_bulkrun", "requeue_job", "cancel_job"}
       for page in ("changelist", "change", "history", "progress")},
    "queue_history": {"view_queue"},
    "worker_history": {"view_worker"},
    "schedule_changelist": {"view_schedule", "change_schedule"},
    "schedule_change": {"view_schedule", "change_schedule"},
    "schedule_history": {"view_schedule", "change_schedule"},
    "schedule_add": {"add_schedule"},
    "schedule_delete": {"delete_schedule"},
}  # fmt: skip


def names(patterns: list[object], route: str = "") -> Iterator[str]:
    """Return the names of the admin's addresses below leasequeue/."""
    for one in patterns:
        whole = f"{route}{one.pattern}"  # type: ignore[attr-defined]
        if isinstance(one, URLResolver):
            yield from names(one.url_patterns, whole)
        elif whole.startswith("leasequeue/") and one.name:  # type: ignore[attr-defined]
            yield one.name.removeprefix("leasequeue_")  # type: ignore[attr-defined]


@pytest.fixture
def urls(queue_db: object) -> dict[str, str]:
    """The addresses of OTHERS, over the rows that are arranged."""
    arrange()
    Schedule.objects.create(name="nightly", job_type="t", every=60)
    found = {}
    for name in OTHERS:
        model, _, page = name.partition("_")
        kinds = {one._meta.model_name: one for one in (Job, Queue, Worker, BulkRun, Schedule)}
        pk = kinds[model].objects.values_list("pk", flat=True).get()
        tail = {"changelist": "", "add": "add/"}.get(page, f"{pk}/{page}/")
        found[name] = f"{ROOT}{model}/{tail}"
    return found


def test_every_address_is_in_a_table(urls: dict[str, str]) -> None:
    tried = {resolve(address.url.partition("?")[0]).url_name for address in addresses()}
    tried = {str(name).removeprefix("leasequeue_") for name in tried}
    assert set(names([*admin.site.get_urls()])) == tried | set(OTHERS)
    assert not tried & set(OTHERS)


def test_what_nobody_may_is_refused_to_a_superuser(urls: dict[str, str]) -> None:
    client = logged_in(User.objects.create_superuser("root", password="x"))
    before = rows()
    for name, needed in OTHERS.items():
        if needed == {""}:
            assert client.get(urls[name]).status_code == 403, name
            assert client.post(urls[name], {"post": "yes"}).status_code == 403, name
    assert rows() == before


def may(client: Client, url: str) -> bool:
    status = client.get(url).status_code
    assert status in (200, 403), url
    return status == 200


@pytest.mark.parametrize("name", [name for name, needed in OTHERS.items() if needed != {""}])
def test_one_of_its_permissions_opens_it_and_no_other(urls: dict[str, str], name: str) -> None:
    user = user_with()
    client = logged_in(user)
    assert not may(client, urls[name])
    own = Permission.objects.filter(content_type__app_label="leasequeue")
    user.user_permissions.set(own.exclude(codename__in=OTHERS[name]))
    assert not may(client, urls[name])
    for codename in OTHERS[name]:
        user.user_permissions.set(own.filter(codename=codename))
        assert may(client, urls[name]), codename


def test_the_bare_address_of_a_row_leads_to_its_page(urls: dict[str, str]) -> None:
    client = logged_in(user_with())
    for model in ("job", "queue", "worker", "bulkrun", "schedule"):
        answer = client.get(f"{ROOT}{model}/1/")
        assert answer.status_code == 302
        assert answer.headers["Location"].endswith(f"/{model}/1/change/")
        assert Client().get(f"{ROOT}{model}/1/").status_code == 302
