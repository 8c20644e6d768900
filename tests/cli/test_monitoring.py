"""A worker whose port or heartbeat file cannot be had is refused before it starts."""

from __future__ import annotations

import socket

import pytest

from django_leasequeue import enqueue
from django_leasequeue.cli import monitoring
from django_leasequeue.models import Job, Worker

pytest.importorskip("prometheus_client")


def test_a_busy_port_is_refused_before_anything_is_claimed(queue_db, leasequeue):
    enqueue("arranged")
    with socket.create_server(("127.0.0.1", 0)) as busy:
        ended = leasequeue("worker", "--solo", "--metrics-port", busy.getsockname()[1])
    assert ended.code == 2
    assert "Address already in use. Choose a port that is free" in ended.err
    assert list(Job.objects.values_list("status", "claims")) == [("ready", 0)]
    assert not Worker.objects.exists()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--metrics-port", "70000"), "--metrics-port must be 0 to 65535."),
        (("--metrics-port", "0", "--metrics-host", "192.0.2.1"), "cannot listen on 192.0.2.1"),
        (("--heartbeat-file", "/nowhere/at/all"), "--heartbeat-file cannot be written"),
    ],
)
def test_what_cannot_be_had_is_refused(queue_db, leasequeue, options, said):
    ended = leasequeue("worker", "--solo", *options)
    assert ended.code == 2
    assert said in ended.err


def test_a_port_needs_the_extra(queue_db, leasequeue, monkeypatch):
    def missing() -> None:
        from django.core.exceptions import ImproperlyConfigured

        raise ImproperlyConfigured("Metrics need prometheus-client")

    monkeypatch.setattr(monitoring, "require_client", missing)
    ended = leasequeue("worker", "--solo", "--metrics-port", "0")
    assert (ended.code, ended.err) == (2, "Metrics need prometheus-client\n")
    assert leasequeue("worker", "--solo", "--drain").code == 0
