"""A way to a database server that can be cut, stalled, slowed down and mended while it is in use.

A `Strike` waits for one statement of one connection, and breaks that connection there.
"""

from __future__ import annotations

import heapq
import itertools
import select
import socket
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Self

_PAUSE = 0.05
_CHUNK = 65536


@dataclass(eq=False)
class Strike:
    """Breaks the first connection that says `at` after it has said `after`, at that message.

    `applied`: the server gets the message first, and its answer is lost; else it never does.
    `silent`: nobody is told, as when a cable is cut, else both ends are closed. With `vanished` the
    server is not told either that the client has gone, as when a machine has lost its power.
    """

    at: bytes
    after: bytes = b""
    applied: bool = False
    silent: bool = False
    vanished: bool = False
    fired: threading.Event = field(default_factory=threading.Event)


@dataclass(eq=False)
class _Pair:
    """One connection: its two ends, what it has said that strikes wait for, how it is broken."""

    client: socket.socket
    server: socket.socket
    said: set[Strike] = field(default_factory=set)
    #: Set when it is to be broken as soon as the server has answered.
    breaking: Strike | None = None
    deaf: Strike | None = None

    def other(self, end: socket.socket) -> socket.socket:
        return self.server if end is self.client else self.client

    def close(self) -> None:
        self.client.close()
        self.server.close()


class Proxy:
    """Forwards TCP connections from `port` on loopback to `target`, in one thread.

    `cut` ends all connections and refuses new ones; `stall` keeps them and forwards nothing; `slow`
    keeps each message back; `mend` undoes all three, but no strike.
    """

    def __init__(self, target: tuple[str, int]) -> None:
        self._target = target
        self._pairs: dict[socket.socket, _Pair] = {}
        self._strikes: list[Strike] = []
        self._late: list[tuple[float, int, socket.socket, bytes]] = []
        self._numbers = itertools.count()
        self._delay = 0.0
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
        self.drop()

    def drop(self) -> None:
        """End every connection; new ones are taken."""
        with self._lock:
            for pair in self._pairs.values():
                pair.close()
            self._pairs.clear()

    def aim(self, target: tuple[str, int]) -> None:
        """Send new connections there from now on."""
        self._target = target

    def stall(self) -> None:
        """Forward nothing more, and say nothing about it."""
        self._stalled.set()

    def forget(self) -> None:
        """Forward nothing more of the connections that there are, as a firewall may; new ones go.

        Nobody is told.
        """
        with self._lock:
            for pair in self._pairs.values():
                pair.deaf = Strike(b"", silent=True)

    def slow(self, seconds: float) -> None:
        """Let each message be under way for so long, in both directions."""
        self._delay = seconds

    def mend(self) -> None:
        """Forward again, on the same port."""
        with self._lock:
            self._delay = 0.0
            self._stalled.clear()
            if self._listener is None:
                self._listener = socket.create_server(("127.0.0.1", self.port))
                self.port = self._listener.getsockname()[1]

    def strike(self, strike: Strike) -> Strike:
        """Wait for this statement, once; `strike.fired` is set when it came."""
        with self._lock:
            self._strikes.append(strike)
        return strike

    def _forward(self) -> None:
        while not self._ended.is_set():
            with self._lock:
                listener = self._listener
                ends = [*self._pairs] + ([listener] if listener is not None else [])
            if self._stalled.is_set() or not ends:
                self._ended.wait(_PAUSE)
                continue
            with suppress(OSError, ValueError):  # cut() closed one of them meanwhile
                for end in select.select(ends, [], [], self._patience())[0]:
                    self._accept(end) if end is listener else self._pass_on(end)
            self._deliver()

    def _patience(self) -> float:
        return max(0.0, min(_PAUSE, self._late[0][0] - time.monotonic())) if self._late else _PAUSE

    def _accept(self, listener: socket.socket) -> None:
        client, _address = listener.accept()
        try:
            server = socket.create_connection(self._target)
        except OSError:  # there is no server just now
            client.close()
            return
        pair = _Pair(client, server)
        with self._lock:
            if self._listener is listener:
                self._pairs[client] = self._pairs[server] = pair
                return
        pair.close()  # cut meanwhile

    def _pass_on(self, end: socket.socket) -> None:
        pair = self._pairs.get(end)
        try:
            data = end.recv(_CHUNK)
        except OSError:
            data = b""  # the same as an end
        if pair is None or not data:
            self._lose(pair, end)
        elif pair.deaf is not None:
            pass
        elif end is pair.server and pair.breaking is not None:
            self._break(pair, pair.breaking)  # this was the answer
        elif end is pair.server or self._passes(pair, data):
            self._send(pair.other(end), data)

    def _send(self, end: socket.socket, data: bytes) -> None:
        # In order: what is late already is not to be overtaken.
        if self._delay or self._late:
            due = time.monotonic() + self._delay
            heapq.heappush(self._late, (due, next(self._numbers), end, data))
            return
        try:
            end.sendall(data)
        except OSError:
            self._lose(self._pairs.get(end), end)

    def _deliver(self) -> None:
        while self._late and self._late[0][0] <= time.monotonic():
            _due, _number, end, data = heapq.heappop(self._late)
            with suppress(OSError):  # its connection has ended meanwhile
                end.sendall(data)

    def _passes(self, pair: _Pair, data: bytes) -> bool:
        """Tell whether a message of the client's goes on to the server, or was struck."""
        for strike in list(self._strikes):
            if strike in pair.said or not strike.after:
                if strike.at in data:
                    self._strikes.remove(strike)
                    if strike.applied:
                        pair.breaking = strike
                    else:
                        self._break(pair, strike)
                    return strike.applied
            elif strike.after in data:
                pair.said.add(strike)
        return True

    def _break(self, pair: _Pair, strike: Strike) -> None:
        pair.breaking = None
        if strike.silent or strike.vanished:
            pair.deaf = strike
        else:
            self._close(pair)
        strike.fired.set()

    def _lose(self, pair: _Pair | None, end: socket.socket) -> None:
        """End a connection of which one end has gone."""
        if pair is None:
            return
        if pair.deaf is not None and pair.deaf.vanished and end is pair.client:
            with self._lock:  # the server is to believe that its client is still there
                self._pairs.pop(end, None)
            return
        self._close(pair)

    def _close(self, pair: _Pair) -> None:
        with self._lock:
            self._pairs.pop(pair.client, None)
            self._pairs.pop(pair.server, None)
        pair.close()
