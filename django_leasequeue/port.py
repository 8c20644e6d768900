"""The port: a small HTTP server beside the worker's loop, for a scraper and for probes.

It answers GET of a few paths, in threads that a slow client cannot hold for longer than some
seconds, and whose number is bounded; closing it ends them all.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, HTTPServer
from socketserver import ThreadingMixIn
from typing import Any, NamedTuple, Self

__all__ = ["Answer", "Port"]

#: A client that neither sends nor reads for so long is let go.
_CLIENT_SECONDS = 3.0
#: How many clients are served at once; more are turned away.
_MOST_CLIENTS = 16
_LOOK_SECONDS = 0.1
_END_SECONDS = 5.0


class Answer(NamedTuple):
    """What a path answers with."""

    status: HTTPStatus
    body: bytes
    content_type: str = "text/plain; charset=utf-8"


#: What answers on a path; it gets the request's Accept header.
Route = Callable[[str], Answer]


class Port:
    """Serves `routes` on an address while it is open; a context manager."""

    def __init__(self, host: str, port: int, routes: Mapping[str, Route]) -> None:
        """Bind and listen, without serving yet. Raises OSError for an address not to be had."""
        self._server = _Server(host, port, routes)
        self._thread = threading.Thread(target=self._serve, name="leasequeue-port", daemon=True)

    @property
    def number(self) -> int:
        """The port that it listens on, also where 0 was asked for."""
        return int(self._server.server_address[1])

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.end()

    def _serve(self) -> None:
        self._server.serve_forever(poll_interval=_LOOK_SECONDS)


class _Server(ThreadingMixIn, HTTPServer):
    """HTTP in a bounded number of threads that are known, and ended by `end`."""

    daemon_threads = True
    request_queue_size = 32

    def __init__(self, host: str, port: int, routes: Mapping[str, Route]) -> None:
        self.routes = routes
        self._clients: dict[Any, threading.Thread] = {}
        self._lock = threading.Lock()
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        super().__init__((host, port), _Handler)

    def server_bind(self) -> None:
        """Bind without HTTPServer's look-up of the host's name, which may take long."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind(self.server_address)
        self.server_address = self.socket.getsockname()
        self.server_name, self.server_port = str(self.server_address[0]), self.server_address[1]

    def process_request(self, request: Any, client_address: Any) -> None:
        """Serve a client in a thread of its own, unless there are too many."""
        request.settimeout(_CLIENT_SECONDS)
        thread = threading.Thread(
            target=self._serve_client,
            args=(request, client_address),
            name="leasequeue-port-client",
            daemon=True,
        )
        with self._lock:
            full = len(self._clients) >= _MOST_CLIENTS
            if not full:
                self._clients[request] = thread
        if full:
            self.shutdown_request(request)
        else:
            thread.start()

    def _serve_client(self, request: Any, client_address: Any) -> None:
        try:
            self.process_request_thread(request, client_address)
        finally:
            with self._lock:
                self._clients.pop(request, None)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing: a client that went away, or sent no HTTP, is its own business."""

    def end(self) -> None:
        """Stop listening, hang up on all clients, and return when their threads have ended."""
        self.server_close()
        with self._lock:
            clients = dict(self._clients)
        for request, thread in clients.items():
            with suppress(OSError):
                request.shutdown(socket.SHUT_RDWR)
            thread.join(_END_SECONDS)


class _Handler(BaseHTTPRequestHandler):
    """Answers GET and HEAD from the server's routes."""

    server: _Server
    server_version = "leasequeue"
    sys_version = ""

    def do_GET(self) -> None:
        """Answer with what the path's route returns."""
        route = self.server.routes.get(self.path.partition("?")[0])
        if route is None:
            paths = ", ".join(self.server.routes)
            answer = Answer(HTTPStatus.NOT_FOUND, f"There are: {paths}\n".encode())
        else:
            answer = route(self.headers.get("Accept", ""))
        self.send_response(answer.status)
        self.send_header("Content-Type", answer.content_type)
        self.send_header("Content-Length", str(len(answer.body)))
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(answer.body)

    do_HEAD = do_GET  # noqa: N815  (its name there)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  (its name there)
        """Log no requests: a scrape every few seconds is no event."""
