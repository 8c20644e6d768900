"""The pulse and the heartbeat file: what they say of a worker, and when they say nothing."""

from __future__ import annotations

import json
import os

import pytest

from django_leasequeue.runtime import heartbeat
from django_leasequeue.runtime.heartbeat import Heartbeat, read_heartbeat
from django_leasequeue.runtime.pulse import LIVE_SECONDS, Pulse, not_live, not_ready

WELL = Pulse(turned_ago=0.1, started=True, stopping=False, reachable=True)
HUNG = WELL._replace(turned_ago=LIVE_SECONDS + 1)


@pytest.mark.parametrize(
    ("pulses", "live", "ready"),
    [
        ([WELL], True, ""),
        ([WELL, WELL._replace(started=False)], True, "starting"),
        ([WELL._replace(stopping=True)], True, "stopping"),
        ([WELL._replace(reachable=False)], True, "the database cannot be reached"),
        ([WELL, HUNG], False, "the loop has not turned for 60 s"),
        ([WELL, HUNG._replace(ended=True)], True, ""),
        ([HUNG._replace(ended=True)], True, "stopping"),
    ],
)
def test_live_and_ready(pulses, live, ready):
    assert (not_live(pulses) == "") is live
    assert not_ready(pulses) == ready


@pytest.fixture
def clock(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(heartbeat, "ticks", lambda: now[0])
    return now


def age(path, seconds):
    moment = path.stat().st_mtime - seconds
    os.utime(path, (moment, moment))


def test_it_is_touched_once_a_second_while_the_loop_turns(tmp_path, clock):
    path, pulses = tmp_path / "beat", [WELL]
    one = Heartbeat(str(path), lambda: pulses)
    one.start()
    assert read_heartbeat(str(path), ready=True) == ""
    age(path, 1000)
    one.beat()
    assert read_heartbeat(str(path)) == ""
    age(path, 1000)
    clock[0] += 0.5
    one.beat()
    assert read_heartbeat(str(path)) == "the worker's loop has not turned for 1000 s"
    clock[0] += 1
    pulses[:] = [HUNG]
    one.beat()
    assert read_heartbeat(str(path)).startswith("the worker's loop")
    pulses[:] = [WELL]
    clock[0] += 1
    one.beat()
    assert read_heartbeat(str(path)) == ""
    one.stop()
    assert list(tmp_path.iterdir()) == []
    assert read_heartbeat(str(path)).startswith("there is no heartbeat file")


def test_it_says_why_the_worker_is_not_ready(tmp_path, clock):
    path, pulses = tmp_path / "beat", [WELL._replace(started=False)]
    one = Heartbeat(str(path), lambda: pulses)
    one.start()
    assert read_heartbeat(str(path), ready=True) == "starting"
    assert read_heartbeat(str(path)) == ""
    pulses[:] = [WELL]
    one.beat()
    assert json.loads(path.read_text()) == {"pid": os.getpid(), "not_ready": ""}


def test_a_file_that_somebody_removed_comes_back(tmp_path, clock):
    path = tmp_path / "beat"
    one = Heartbeat(str(path), lambda: [WELL])
    one.start()
    path.unlink()
    one.beat()
    assert read_heartbeat(str(path)) == ""


def test_a_folder_that_is_gone_stops_nobody(tmp_path, clock, caplog):
    folder = tmp_path / "folder"
    folder.mkdir()
    one = Heartbeat(str(folder / "beat"), lambda: [WELL])
    one.start()
    (folder / "beat").unlink()
    folder.rmdir()
    for _ in range(3):
        one.beat()
        clock[0] += 1
    assert [record.getMessage() for record in caplog.records] == ["heartbeat_refused"]
    with pytest.raises(OSError, match="No such file"):
        Heartbeat(str(folder / "beat"), lambda: [WELL]).start()


@pytest.mark.parametrize("text", ["", "[]", "{}", "nonsense"])
def test_a_file_that_is_none(tmp_path, text):
    path = tmp_path / "beat"
    path.write_text(text)
    assert read_heartbeat(str(path)).startswith("the heartbeat file cannot be read")


def test_a_clock_that_was_set_back(tmp_path):
    path = tmp_path / "beat"
    path.write_text('{"not_ready": ""}')
    age(path, -1000)
    assert read_heartbeat(str(path)).startswith("the worker's loop")
