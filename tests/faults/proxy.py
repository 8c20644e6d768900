"""A way to a database server that can be cut, stalled and mended while it is in use."""

from __future__ import annotations

import select
import socket
import threading
from contextlib import suppress
from typing import Self

_PAUSE = 0.05
_CHUNK = 65536


class Proxy:
    """Forwards TCP connections from `port` on loopback to `target`, in one thread.

    `cut` ends all connections and refuses new ones; `stall` keeps them and forwards nothing;
    `mend` undoes both.
    """

    def __init__(self, target: tuple[str, int]) -> None:
        self._target = target
        self._pairs: dict[socket.socket, socket.socket] = {}
        self._lock = threading.Lock()
        self._stalled = threading.Event()
        self._ended = threading.Event()
        self._listener: socket.socket | None = None
        self.port = 0
        self.mend()
        self._thread = threading.Thread(target=self._forward, name="proxy")

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._ended.set()
        self._thread.join()
        self.cut()

    def cut(self) -> None:
        """End every connection; from now on new ones are refused."""
        with self._lock:
            listener, self._listener = self._listener, None
            if listener is not None:
                listener.close()
            for end in [*self._pairs]:
                end.close()
            self._pairs.clear()

    def stall(self) -> None:
        """Forward nothing more, and say nothing about it."""
        self._stalled.set()

    def mend(self) -> None:
        """Forward again, on the same port."""
        with self._lock:
            self._stalled.clear()
            if self._listener is None:
                self._listener = socket.create_server(("127.0.0.1", self.port))
                self.port = self._listener.getsockname()[1]

    def _forward(self) -> None:
        while not self._ended.is_set():
            with self._lock:
                listener = self._listener
                ends = [*self._pairs] + ([listener] if listener is not None else [])
            if self._stalled.is_set() or not ends:
                self._ended.wait(_PAUSE)
                continue
            with suppress(OSError, ValueError):  # cut() closed one of them meanwhile
                for end in select.select(ends, [], [], _PAUSE)[0]:
                    self._accept(end) if end is listener else self._pass_on(end)

    def _accept(self, listener: socket.socket) -> None:
        client, _address = listener.accept()
        server = socket.create_connection(self._target)
        with self._lock:
            if self._listener is listener:
                self._pairs[client], self._pairs[server] = server, client
                return
        client.close()  # cut meanwhile
        server.close()

    def _pass_on(self, end: socket.socket) -> None:
        try:
            data = end.recv(_CHUNK)
            if data:
                self._pairs[end].sendall(data)
                return
        except (OSError, KeyError):
            pass  # the same as an end
        with self._lock:
            for gone in (end, self._pairs.pop(end, None)):
                if gone is not None:
                    self._pairs.pop(gone, None)
                    gone.close()
