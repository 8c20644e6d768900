"""Nudges go to every socket in the folder, and to nobody else; nothing depends on one."""

from __future__ import annotations

import socket
import stat
from pathlib import Path

import pytest

from django_leasequeue.nudges import NudgeSocket, folder_for, nudge


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "nudges"


@pytest.fixture
def listening(folder):
    made = []

    def listen():
        made.append(NudgeSocket(folder))
        return made[-1]

    yield listen
    for one in made:
        one.close()


def test_every_worker_hears_each_queue_once(folder, listening):
    workers = [listening(), listening()]
    for one in workers:
        one.read()  # a worker that starts sweeps out what is left, and its neighbours hear it
    for _ in range(2):
        nudge(folder, ["mail", "büro"])
    assert [one.read() for one in workers] == [{"mail", "büro"}] * 2
    assert workers[0].read() == set()


def test_more_nudges_than_a_socket_holds_are_dropped(folder, listening):
    worker = listening()
    for _ in range(10_000):
        nudge(folder, ["mail"])
    assert worker.read() == {"mail"}


def test_the_socket_of_a_killed_worker_is_swept_out(folder, listening):
    folder.mkdir()
    dead = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    dead.bind(str(folder / "1-dead.nudge"))
    dead.close()
    living = listening()
    assert [path.name for path in folder.iterdir()] == [living._path.name]
    nudge(folder, ["mail"])
    assert living.read() == {"mail"}


def test_nothing_is_left_behind(folder):
    worker = NudgeSocket(folder)
    worker.close()
    worker.close()
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("what", ["no folder", "a file", "foreign files"])
def test_nobody_to_nudge(folder, what):
    if what == "a file":
        folder.touch()
    if what == "foreign files":
        folder.mkdir()
        (folder / "a.nudge").touch()
        (folder / "readme").touch()
    nudge(folder, ["mail"])


def test_a_folder_that_cannot_be_made(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(OSError, match="file"):
        NudgeSocket(tmp_path / "file" / "nudges")


def test_a_path_too_long_for_a_socket(tmp_path):
    with pytest.raises(OSError, match="too long"):
        NudgeSocket(tmp_path / ("x" * 120))


def test_folders(settings):
    assert folder_for("jobs", "/run/jobs") == Path("/run/jobs")
    mine = folder_for("jobs", "")
    assert mine == folder_for("jobs", "")
    assert mine != folder_for("other", "")
    settings.SECRET_KEY = "another"
    assert mine != folder_for("jobs", "")


def test_a_socket_that_was_replaced_is_not_followed(folder, tmp_path, monkeypatch):
    """Whoever owns the folder may put a link in its place, before its mode is set."""
    secret = tmp_path / "secret"
    secret.touch(0o600)

    class Replaced(socket.socket):
        def bind(self, address):
            super().bind(address)
            Path(address).unlink()
            Path(address).symlink_to(secret)

    monkeypatch.setattr(socket, "socket", Replaced)
    with pytest.raises(OSError, match=r"link|supported"):
        NudgeSocket(folder)
    assert stat.S_IMODE(secret.stat().st_mode) == 0o600
