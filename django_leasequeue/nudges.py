"""Nudges: datagrams to the workers on this host, each of which has a socket in one folder.

A nudge is a hint that may get lost: it names a queue, and a worker that hears it looks earlier
than it would have. Nothing depends on one.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import socket
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

from django.utils.crypto import salted_hmac

__all__ = ["NudgeSocket", "folder_for", "nudge"]

_SUFFIX = ".nudge"
#: Anybody may look into it and have a socket there; only the owner of a socket removes it.
_FOLDER_MODE = 0o1777
#: The web server's user is not the worker's.
_SOCKET_MODE = 0o666
_MOST_BYTES = 512


def folder_for(database: str, folder: str) -> Path:
    """Return the folder of the sockets for a database of this name: `folder`, or one of its own.

    That is below the folder for temporary files, and nobody without the project's SECRET_KEY can
    tell its name beforehand.
    """
    if folder:
        return Path(folder)
    digest = salted_hmac("django_leasequeue.nudges", database, algorithm="sha256").hexdigest()[:16]
    return Path(tempfile.gettempdir()) / f"leasequeue-{digest}"


def nudge(folder: Path, queues: Iterable[str]) -> None:
    """Tell every worker with a socket in the folder of jobs in these queues; raises nothing.

    A worker that is gone, or too busy to listen, is passed over.
    """
    if not hasattr(socket, "AF_UNIX"):  # Windows
        return
    messages = [queue.encode()[:_MOST_BYTES] for queue in queues]
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
        sender.setblocking(False)
        for path in _sockets(folder):
            for message in messages:
                if not _send(sender, message, path):
                    break


def _sockets(folder: Path) -> Iterator[str]:
    with os.scandir(folder) as entries:
        yield from (entry.path for entry in entries if entry.name.endswith(_SUFFIX))


def _send(sender: socket.socket, message: bytes, path: str) -> bool:
    try:
        sender.sendto(message, path)
    except ConnectionRefusedError:  # its worker was killed
        with contextlib.suppress(OSError):
            Path(path).unlink()
        return False
    except OSError:
        return False
    return True


class NudgeSocket:
    """A worker's own socket in the folder; a context for as long as it listens."""

    def __init__(self, folder: Path) -> None:
        """Make the socket, and the folder if need be; sweep out those of killed workers.

        Raises OSError when that cannot be done there.
        """
        if not hasattr(socket, "AF_UNIX"):
            raise OSError("this platform's Python has no Unix sockets")
        with contextlib.suppress(FileExistsError):
            folder.mkdir(parents=True)
            folder.chmod(_FOLDER_MODE)
        nudge(folder, [""])
        self._path = folder / f"{os.getpid()}-{secrets.token_hex(4)}{_SUFFIX}"
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        try:
            self._socket.setblocking(False)
            self._socket.bind(str(self._path))
            _open_to_all(self._path)
        except BaseException:
            self.close()
            raise

    def fileno(self) -> int:
        """Return what becomes readable when there is a nudge."""
        return self._socket.fileno()

    def read(self) -> set[str]:
        """Return the queues of the nudges that have come since the last call."""
        heard = set()
        with contextlib.suppress(BlockingIOError):
            while True:
                heard.add(self._socket.recv(_MOST_BYTES).decode(errors="replace"))
        return heard

    def close(self) -> None:
        """Remove the socket; raises nothing."""
        self._socket.close()
        with contextlib.suppress(OSError):
            self._path.unlink()


def _open_to_all(path: Path) -> None:
    """Let everybody write to the socket; follow no link that the folder's owner has put there."""
    try:
        path.chmod(_SOCKET_MODE, follow_symlinks=False)
    except NotImplementedError as error:
        raise OSError(
            f"{path} is a link, or its mode cannot be set without following it"
        ) from error
