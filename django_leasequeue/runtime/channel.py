"""A channel: whole messages over a socket, in which control never waits for the other side.

What cannot be written at once is kept and written when the socket takes it again.
"""

from __future__ import annotations

import io
import pickle  # both ends are ours, and the reader builds this package's records only
import socket
import struct
import threading
from dataclasses import is_dataclass
from enum import Enum
from typing import Any

__all__ = ["Channel"]

_HEAD = struct.Struct("!I")
_CHUNK = 1 << 18
_OWN = "django_leasequeue."
_PLAIN = {("datetime", name) for name in ("datetime", "timedelta", "timezone")}
#: The classes that messages have had so far.
_found: dict[tuple[str, str], Any] = {}


class _Unpickler(pickle.Unpickler):
    def find_class(self, module_name: str, name: str, /) -> Any:
        found = _found.get((module_name, name))
        if found is None:
            found = _found[module_name, name] = self._look_up(module_name, name)
        return found

    def _look_up(self, module_name: str, name: str) -> Any:
        if (module_name, name) in _PLAIN:
            return super().find_class(module_name, name)
        if module_name.startswith(_OWN):
            found = super().find_class(module_name, name)
            # "subprocess.Popen" is a name of any module that has imported subprocess.
            if _is_record(found) and (found.__module__, found.__qualname__) == (module_name, name):
                return found
        raise pickle.UnpicklingError(f"{module_name}.{name} is no part of a message")


def _is_record(found: Any) -> bool:
    """Tell whether this is a class that only holds values: making one does nothing else."""
    if not isinstance(found, type):
        return False
    return is_dataclass(found) or issubclass(found, Enum) or hasattr(found, "_fields")


class Channel:
    """One end; `send` may be called from any thread, the rest from one."""

    def __init__(self, sock: socket.socket, *, blocking: bool) -> None:
        """Own `sock`; a `blocking` end waits until its messages are written."""
        self._socket = sock
        self._blocking = blocking
        self._lock = threading.Lock()
        self._out = bytearray()
        self._in = bytearray()
        self.closed = False
        sock.setblocking(blocking)

    def fileno(self) -> int:
        """Return the descriptor, for select."""
        return self._socket.fileno()

    @property
    def wants_write(self) -> bool:
        """Tell whether messages wait for the socket to take them."""
        return bool(self._out)

    def send(self, *messages: object) -> None:
        """Send messages, or keep them until `flush`; a peer that is gone is found by `receive`."""
        data = pickle.dumps(messages, protocol=pickle.HIGHEST_PROTOCOL)
        with self._lock:
            self._out += _HEAD.pack(len(data)) + data
            self._write()

    def flush(self) -> None:
        """Write what the socket takes now."""
        with self._lock:
            self._write()

    def _write(self) -> None:
        try:
            while self._out:
                with memoryview(self._out)[:_CHUNK] as view:
                    count = self._socket.send(view)
                del self._out[:count]
        except BlockingIOError:
            pass
        except OSError:
            self._out.clear()

    def receive(self) -> list[Any]:
        """Return the messages that have come; sets `closed` when the peer is gone.

        A blocking end waits for the first bytes.
        """
        try:
            while True:
                data = self._socket.recv(_CHUNK)
                if not data:
                    self.closed = True
                    break
                self._in += data
                if self._blocking:
                    break
        except BlockingIOError:
            pass
        except OSError:
            self.closed = True
        return self._messages()

    def _messages(self) -> list[Any]:
        messages: list[Any] = []
        start = 0
        while len(self._in) - start >= _HEAD.size:
            (size,) = _HEAD.unpack_from(self._in, start)
            end = start + _HEAD.size + size
            if len(self._in) < end:
                break
            messages.extend(_Unpickler(io.BytesIO(self._in[start + _HEAD.size : end])).load())
            start = end
        del self._in[:start]
        return messages

    def close(self) -> None:
        """Close this end."""
        self.closed = True
        self._socket.close()
