"""An archive: a gzip file that grows by whole members, each on the disk before it counts.

What a killed run has left of its last member is cut off by the next run: the jobs in it are still
in the table, for they are deleted after their member is complete.
"""

from __future__ import annotations

import os
import stat
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from io import FileIO
from pathlib import Path

from django_leasequeue.exceptions import LeaseQueueError

__all__ = ["Archive", "open_archive"]

_PIECE = 1 << 18
_GZIP = 31  # zlib's word for "with a gzip header"


class Archive:
    """An open archive; `size` is where its next member will begin."""

    def __init__(self, file: FileIO, size: int) -> None:
        self._file = file
        self.size = size

    def append(self, lines: Iterable[str]) -> None:
        """Write the lines as one member; on return it is on the disk, whole.

        When a line or the disk fails nothing of it is left. Raises OSError for the disk.
        """
        with self.undone_by_errors():
            member = zlib.compressobj(wbits=_GZIP)
            for line in lines:
                self._write(member.compress(line.encode() + b"\n"))
            self._write(member.flush())
            os.fsync(self._file.fileno())
            self.size = self._file.tell()

    def _write(self, data: bytes) -> None:
        rest = memoryview(data)
        while rest:
            rest = rest[self._file.write(rest) :]

    @contextmanager
    def undone_by_errors(self) -> Iterator[None]:
        """Take back what was appended in the block when the block raises."""
        before = self.size
        try:
            yield
        except BaseException:
            self.cut(before)
            raise

    def cut(self, size: int) -> None:
        """Take back the members from `size` on."""
        self._file.truncate(size)
        self._file.seek(size)
        self.size = size


@contextmanager
def open_archive(path: str | os.PathLike[str]) -> Iterator[Archive]:
    """Open an archive to append to, or make it, readable by its owner alone.

    An existing one is read through, and what a killed run left of a last member is cut off.
    Raises LeaseQueueError for a path that cannot be written, is somebody else's file, is in use
    by another run or holds anything but whole gzip members.
    """
    try:
        file = FileIO(os.open(path, os.O_RDWR | os.O_CREAT | os.O_NONBLOCK, 0o600), "r+")
    except OSError as error:
        raise LeaseQueueError(f"The archive {path} cannot be written: {error.strerror}") from error
    with file:
        _take(file, path)
        archive = Archive(file, 0)
        archive.cut(_whole_members(file, path))
        _sync_folder(path)
        yield archive


def _take(file: FileIO, path: str | os.PathLike[str]) -> None:
    found = os.fstat(file.fileno())
    if not stat.S_ISREG(found.st_mode):
        raise LeaseQueueError(f"The archive {path} is no ordinary file")
    if found.st_uid != os.geteuid():
        raise LeaseQueueError(
            f"The archive {path} belongs to another user, who could read the payloads in it"
        )
    os.fchmod(file.fileno(), 0o600)
    try:
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        raise LeaseQueueError(f"The archive {path} is in use by another run") from error


def _whole_members(file: FileIO, path: str | os.PathLike[str]) -> int:
    """Return where the last whole member ends."""
    end, member = 0, zlib.decompressobj(_GZIP)
    fresh, more, data = True, False, b""
    while data or more or (data := file.read(_PIECE)):
        if fresh and not data.strip(b"\0"):
            data = b""  # a member whose bytes never reached the disk
            continue
        try:
            more = len(member.decompress(data, _PIECE)) == _PIECE
        except zlib.error as error:
            raise LeaseQueueError(
                f"The archive {path} is damaged behind byte {end}, or no gzip file: "
                "move it away, or name another one"
            ) from error
        fresh = member.eof
        data = member.unused_data if fresh else member.unconsumed_tail
        if fresh:
            end, member, more = file.tell() - len(data), zlib.decompressobj(_GZIP), False
    return end


def _sync_folder(path: str | os.PathLike[str]) -> None:
    """Have the file's name on the disk as well."""
    folder = os.open(Path(path).resolve().parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
