"""The pages that are asked for: all there are, and each filter alone and with a queue."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from django.contrib import admin
from django.contrib.auth.admin import UserAdmin
from django.contrib.auth.models import User
from django.urls import path

from django_leasequeue.admin.about import JobsAboutMixin
from django_leasequeue.admin.filters import StatusFilter
from django_leasequeue.codec import digest_key
from django_leasequeue.models import BulkRun, Queue, Schedule, Worker
from tests.bench_admin.fill import BIG_GROUP, KEY

ROOT = "/admin/leasequeue/"
_STATUSES = (
    *("ready", "scheduled", "retrying", "reserved", "expired"),
    *("parked", "done", "dead", "cancelled"),
)


class UserWithJobs(JobsAboutMixin, UserAdmin):
    """A page of a project's own that shows jobs."""

    def job_keys(self, obj: User) -> list[str]:
        return [KEY, *(f"user:{obj.pk}:{n}" for n in range(20))]

    def job_ids(self, obj: User) -> list[int]:
        return list(range(1, 50))


_about = admin.AdminSite(name="about")
_about.register(User, UserWithJobs)
urlpatterns = [path("admin/", admin.site.urls), path("about/", _about.urls)]


def pages(worst: int, user: int) -> Iterator[tuple[str, str]]:
    """Yield a title and an address; `worst` is the job with the most attempts."""
    yield "dashboard", ROOT
    yield "dashboard, live part", f"{ROOT}queue/dashboard/"
    jobs = f"{ROOT}job/"
    yield "jobs", jobs
    for query in ("p=2", "p=100", "p=101", "o=1", "o=-1", "o=6", "all="):
        yield f"jobs ?{query}", f"{jobs}?{query}"
    for query in _filters():
        yield f"jobs ?{query}", f"{jobs}?{query}"
        yield f"jobs ?{query}&o=1", f"{jobs}?{query}&o=1"
    for query in ("status=done&p=100", "queue=queue-1&p=100", "type=bench.type1&p=100"):
        yield f"jobs ?{query}", f"{jobs}?{query}"
    searched = {"id": worst, "key": KEY, "idempotency_key": digest_key(KEY), "nothing": "none"}
    for name, term in searched.items():
        yield f"search: {name}", f"{jobs}?q={term}"
        yield f"search: {name}, dead", f"{jobs}?q={term}&status=dead"
    yield "a job, 500 attempts", f"{jobs}{worst}/change/"
    yield "a done job", f"{jobs}1/change/"
    yield "a job's history", f"{jobs}{worst}/history/"
    yield "edit payload", f"{jobs}{worst}/payload/"
    dead, group = f"{ROOT}deadgroup/", f"type=big.type&fingerprint={BIG_GROUP}"
    yield "dead letters", dead
    for query in ("queue=queue-1", "type=bench.type1", "type=big.type", "sort=last", "queue=rare"):
        yield f"dead letters ?{query}", f"{dead}?{query}"
    yield "a group of 12 000", f"{dead}group/?{group}"
    yield "its page 100", f"{dead}group/?{group}&p=100"
    for operation, query in product(("requeue", "cancel"), (group, "queue=queue-1", "")):
        yield f"{operation} ?{query}", f"{dead}{operation}/confirm/?{query}"
    yield "queues", f"{ROOT}queue/"
    yield "queues, second page", f"{ROOT}queue/?after=queue-3"
    yield "queues, live part", f"{ROOT}queue/live/"
    for name in ("worker", "schedule", "bulkrun"):
        yield f"{name}s", f"{ROOT}{name}/"
    yield from _rows()
    yield "jobs about an object", f"/about/auth/user/{user}/change/"


def _rows() -> Iterator[tuple[str, str]]:
    """Yield the pages of one row of each other kind."""
    pages = {
        Queue: ("change", "history"),
        Worker: ("change", "history"),
        Schedule: ("change", "history", "delete"),
        BulkRun: ("change",),
    }
    for model, names in pages.items():
        kind, pk = model.__name__.lower(), model._default_manager.order_by("pk")[0].pk
        yield from ((f"a {kind}: {name}", f"{ROOT}{kind}/{pk}/{name}/") for name in names)
    yield "a new schedule", f"{ROOT}schedule/add/"


def _filters() -> Iterator[str]:
    assert StatusFilter.parameter_name == "status"
    states = [f"status={status}" for status in _STATUSES]
    yield from states
    for name in ("queue=queue-1", "queue=rare", "type=bench.type1", "type=rare.type"):
        yield name
        yield from (f"{state}&{name}" for state in states)
    yield "queue=queue-1&type=bench.type1"
    yield "queue=queue-1&type=bench.type2"
    yield "queue=queue-1&type=rare.type"
    yield "queue=large&type=mass.type"
    yield "queue=none"
    yield "type=none"
    yield "status=dead&queue=queue-1&type=bench.type1"
