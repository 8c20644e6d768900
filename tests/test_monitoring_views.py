"""The views of a web process: the gauges for who may see them, and health for everybody."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client
from django.urls import include, path

from django_leasequeue import enqueue
from django_leasequeue.core.gauges import read_gauges
from django_leasequeue.health import health
from django_leasequeue.metrics import gauges, views
from django_leasequeue.metrics.gauges import FRESH_SECONDS, KEPT_SECONDS, GaugeReader, GaugeSource
from django_leasequeue.runtime import soundness
from tests.core.arrange import run, shift

pytest.importorskip("prometheus_client")

urlpatterns = [
    path("queue/", include("django_leasequeue.urls")),
    path("strict/", health, {"max_oldest": 60}),
]
TOKEN = "a-token-of-many-characters"


@pytest.fixture(autouse=True)
def _urls(settings: Any) -> None:
    settings.ROOT_URLCONF = __name__
    views._sources.clear()


@pytest.fixture
def away(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Makes reading fail, or work again."""

    def refuse(connection: Any) -> Any:
        raise ConnectionError

    def switch(*, to: bool) -> None:
        monkeypatch.setattr(gauges, "read_gauges", refuse if to else read_gauges)

    return switch


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [1000.0]
    monkeypatch.setattr(gauges, "ticks", lambda: now[0])
    return now


def metrics(client: Client, **headers: str) -> Any:
    return client.get("/queue/metrics/", headers=headers)


def test_metrics_are_for_who_may_see_jobs(queue_db, client, settings):
    assert metrics(client).status_code == 403
    user = User.objects.create_user("op", password="op")
    client.force_login(user)
    assert metrics(client).status_code == 403
    user.user_permissions.add(Permission.objects.get(codename="view_job"))
    answer = metrics(client)
    assert answer.status_code == 200
    assert answer["Content-Type"].startswith("text/plain")
    assert "no-store" in answer["Cache-Control"]
    user.delete()


@pytest.mark.parametrize(
    ("configured", "sent", "status"),
    [
        (TOKEN, f"Bearer {TOKEN}", 200),
        (TOKEN, f"bearer  {TOKEN}", 200),
        (TOKEN, f"Basic {TOKEN}", 403),
        (TOKEN, f"Bearer {TOKEN}x", 403),
        (TOKEN, "Bearer é", 403),
        (TOKEN, "Bearer", 403),
        ("", "Bearer ", 403),
    ],
)
def test_metrics_are_for_who_has_the_token(queue_db, client, settings, configured, sent, status):
    settings.LEASEQUEUE = {**settings.LEASEQUEUE, "METRICS_TOKEN": configured}
    assert metrics(client, authorization=sent).status_code == status


def test_the_metrics_view_shows_gauges_only(queue_db, client, settings):
    settings.LEASEQUEUE = {**settings.LEASEQUEUE, "METRICS_TOKEN": TOKEN}
    enqueue("arranged", queue="a")
    text = metrics(client, authorization=f"Bearer {TOKEN}").content.decode()
    assert 'leasequeue_queue_ready{database="default",queue="a"} 1.0' in text
    assert 'leasequeue_database_up{database="default"} 1.0' in text
    assert "_total" not in text
    assert client.post("/queue/metrics/").status_code == 405


def test_health(queue_db, client, monkeypatch):
    answer = client.get("/queue/health/")
    assert (answer.status_code, answer.content) == (200, b"ok\n")
    due = enqueue("arranged").id
    shift(queue_db, due, "available_at", -3600)
    assert client.get("/queue/health/").status_code == 200
    answer = client.get("/strict/")
    assert answer.status_code == 503
    assert answer.content.startswith(b"a due job has waited for 36")
    monkeypatch.setattr(soundness, "_newest_migration", lambda: "9999_later")
    assert client.get("/queue/health/").content == (
        b"migration leasequeue.9999_later is not applied\n"
    )


def test_health_without_a_table_or_a_server(queue_db, client):
    run(queue_db, "ALTER TABLE leasequeue_job RENAME TO leasequeue_gone")
    try:
        answer = client.get("/queue/health/")
    finally:
        run(queue_db, "ALTER TABLE leasequeue_gone RENAME TO leasequeue_job")
    assert answer.status_code == 503
    assert answer.content.startswith(b"the database cannot be used: ")


def test_a_reading_is_kept_for_some_seconds(queue_db, clock, monkeypatch):
    reads = []

    def read(connection: Any) -> Any:
        reads.append(connection)
        return read_gauges(connection)

    monkeypatch.setattr(gauges, "read_gauges", read)
    source = GaugeSource("default")
    for _ in range(3):
        assert source.read().up
    assert len(reads) == 1
    clock[0] += FRESH_SECONDS
    source.read()
    assert len(reads) == 2


def test_while_the_database_is_away_the_last_reading_is_shown_for_a_while(queue_db, clock, away):
    enqueue("arranged", queue="a")
    source = GaugeSource("default")
    names = {family.name for family in gauges.gauge_families([source.read()])}
    assert "leasequeue_queue_ready" in names
    away(to=True)
    clock[0] += FRESH_SECONDS
    up, *families = gauges.gauge_families([source.read()])
    assert [sample.value for sample in up.samples] == [0]
    assert {"leasequeue_queue_ready"} <= {family.name for family in families}
    clock[0] += KEPT_SECONDS
    families = gauges.gauge_families([source.read()])
    assert [one.name for one in families if one.samples] == ["leasequeue_database_up"]
    away(to=False)
    clock[0] += FRESH_SECONDS
    assert source.read().up


def test_a_slow_reading_holds_up_no_scrape(queue_db, monkeypatch):
    let_go, begun = threading.Event(), threading.Event()

    def slow(connection: Any) -> Any:
        begun.set()
        let_go.wait(30)
        return read_gauges(connection)

    monkeypatch.setattr(gauges, "read_gauges", slow)
    monkeypatch.setattr(gauges, "_PATIENCE", 0.05)
    reader = GaugeReader("default")
    reader.start()
    try:
        assert not reader.read().up
        assert begun.wait(30)
        assert not reader.read().up
        let_go.set()
        monkeypatch.setattr(gauges, "_PATIENCE", 30)
        assert reader.read().up
    finally:
        let_go.set()
        reader.stop()
    assert not reader._thread.is_alive()


def test_without_prometheus_client_it_is_said_what_to_install(monkeypatch):
    import builtins

    from django.core.exceptions import ImproperlyConfigured

    from django_leasequeue.metrics.exposition import require_client

    real = builtins.__import__

    def refuse(name: str, *args: Any) -> Any:
        if name.startswith("prometheus_client"):
            raise ImportError
        return real(name, *args)

    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(ImproperlyConfigured, match=r"django-leasequeue\[metrics\]"):
        require_client()
