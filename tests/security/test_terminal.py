"""What a command prints: no text of a row, or of an argument, reaches a terminal as it is."""

from __future__ import annotations

import shlex

import pytest

from tests.admin_pages import arrange
from tests.cli.conftest import Ended
from tests.security.hostile import TEXTS

COMMANDS = {
    "status": "status",
    "jobs": "jobs --limit 5",
    "jobs with payloads": "jobs --payload",
    "one job": "jobs {job} --payload",
    "of a queue": "jobs --queue {text}",
    "of a type": "jobs --type {text}",
    "by key": "jobs --key {text}",
    "schedules": "schedules",
    "doctor": "doctor",
    "cancel": "cancel {job}",
    "requeue": "requeue {job}",
    "requeue a type": "requeue --type {text} --dry-run",
    "pause": "pause {text} --reason {text}",
    "resume": "resume {text}",
    "enqueue": "enqueue {text} {text}",
    "sign": "sign --dry-run",
    "recover": "recover",
    "prune": "prune --dry-run",
    "health": "health",
    "no such command": "{text}",
    "no such value": "jobs --since {text}",
}


def unprintable(ended: Ended) -> list[str]:
    lines = [*ended.out.split("\n"), *ended.err.split("\n")]
    return [line for line in lines if not line.isprintable()]


#: All of them in one: a printing that lets any of them through fails.
HOSTILE = "".join(TEXTS[name] for name in ("terminal", "line ends", "direction", "log line"))[:64]


def test_it_holds_what_is_meant():
    assert {"\x1b", "\x9b", "\x7f", "\x85", "\u2028", "\u202e", "\n"} <= set(HOSTILE)


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
def test_a_terminal_gets_text(queue_db, leasequeue, command):
    job = arrange(HOSTILE)
    words = [word.format(job=job, text=HOSTILE) for word in shlex.split(command)]
    for options in ([], ["--json"]):
        assert unprintable(leasequeue(*words, *options)) == []
