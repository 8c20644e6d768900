"""One address for whichever node is the writer, as HAProxy or ProxySQL would keep it."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Self

from tests.cluster.nodes import Node
from tests.faults.proxy import Proxy

CHECK_SECONDS = 0.2


class Router:
    """Sends connections to one writer; when that fails, ends them and goes on with the next.

    It stays with a writer that answers, whatever else could be one.
    """

    def __init__(self, nodes: Sequence[Node]) -> None:
        self._nodes = list(nodes)
        self.writer = next(node for node in nodes if node.is_writable())
        self._proxy = Proxy(("127.0.0.1", self.writer.port))
        self._ended = threading.Event()
        self._checks = threading.Thread(target=self._check, name="router")

    @property
    def port(self) -> int:
        """Where it listens, on loopback."""
        return self._proxy.port

    def __enter__(self) -> Self:
        self._proxy.__enter__()
        self._checks.start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._ended.set()
        self._checks.join()
        self._proxy.__exit__(*exc_info)

    def _check(self) -> None:
        while not self._ended.wait(CHECK_SECONDS):
            if self.writer.is_writable():
                continue
            found = next((node for node in self._nodes if node.is_writable()), None)
            if found is not None:
                self.writer = found
                self._proxy.aim(("127.0.0.1", found.port))
            self._proxy.drop()
