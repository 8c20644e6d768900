"""The port: what it answers, that a bad client holds up nobody, and that its end is one."""

from __future__ import annotations

import socket
import threading
import urllib.error
import urllib.request
from http import HTTPStatus

import pytest

from django_leasequeue import port as port_module
from django_leasequeue.port import Answer, Port
from tests.waiting import wait_until


def fetch(port: Port, path: str, method: str = "GET") -> tuple[int, bytes]:
    request = urllib.request.Request(f"http://127.0.0.1:{port.number}{path}", method=method)
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read()


def ours() -> set[str]:
    return {one.name for one in threading.enumerate() if one.name.startswith("leasequeue-port")}


ROUTES = {
    "/a": lambda accept: Answer(HTTPStatus.OK, b"A"),
    "/b": lambda accept: Answer(HTTPStatus.SERVICE_UNAVAILABLE, b"B"),
}


def test_routes():
    with Port("127.0.0.1", 0, ROUTES) as port:
        assert fetch(port, "/a?x=1") == (200, b"A")
        assert fetch(port, "/a", "HEAD") == (200, b"")
        assert fetch(port, "/b") == (503, b"B")
        assert fetch(port, "/c") == (404, b"There are: /a, /b\n")
        assert fetch(port, "/a", "POST")[0] == 501
    assert not ours()


def test_a_busy_port_is_refused():
    with Port("127.0.0.1", 0, ROUTES) as port, pytest.raises(OSError, match="in use"):
        Port("127.0.0.1", port.number, ROUTES)


def test_silent_clients_neither_hold_up_others_nor_the_end():
    with Port("127.0.0.1", 0, ROUTES) as port:
        silent = [socket.create_connection(("127.0.0.1", port.number)) for _ in range(5)]
        assert fetch(port, "/a") == (200, b"A")
    assert not ours()
    for one in silent:
        one.close()


def test_too_many_clients_are_turned_away(monkeypatch):
    monkeypatch.setattr(port_module, "_MOST_CLIENTS", 2)
    with Port("127.0.0.1", 0, ROUTES) as port:
        silent = [socket.create_connection(("127.0.0.1", port.number)) for _ in range(2)]
        wait_until(lambda: sum(name.endswith("client") for name in names()) == 2)
        with socket.create_connection(("127.0.0.1", port.number)) as third:
            assert third.recv(1) == b""
        for one in silent:
            one.close()
        wait_until(lambda: not any(name.endswith("client") for name in names()))
        assert fetch(port, "/a") == (200, b"A")


def names() -> list[str]:
    return [one.name for one in threading.enumerate()]


def test_a_route_that_raises_costs_one_answer():
    def broken(accept: str) -> Answer:
        raise RuntimeError

    with Port("127.0.0.1", 0, {**ROUTES, "/broken": broken}) as port:
        with pytest.raises(OSError, match="closed"):
            fetch(port, "/broken")
        assert fetch(port, "/a") == (200, b"A")
