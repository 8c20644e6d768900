"""`leasequeue doctor`: exit codes, lines and the document."""

from __future__ import annotations

import json

import pytest

from django_leasequeue import enqueue
from tests.core.arrange import write


@pytest.fixture
def broken(connection) -> None:
    write(connection, enqueue("arranged").id, status="queued\x1b[2J")


def test_a_sound_queue_is_0(connection, leasequeue):
    ended = leasequeue("doctor")
    assert (ended.code, ended.err) == (0, "")
    assert ended.lines[-1].startswith("errors: 0, warnings: 0, notes: ")


def test_a_finding_is_1_and_says_what_to_do(broken, leasequeue):
    ended = leasequeue("doctor")
    assert ended.code == 1
    first, advice, *_others = ended.lines
    assert first.startswith("warning leasequeue.W015: ")
    assert advice.endswith("See docs/checks.md#jobs.")
    assert "\x1b" not in ended.out


def test_json(broken, leasequeue):
    ended = leasequeue("doctor", "--json")
    assert ended.code == 1
    document = ended.document
    assert (document["database"], document["errors"], document["warnings"]) == ("default", 0, 1)
    found = document["findings"][0]
    assert set(found) == {"id", "severity", "what", "do", "docs"}
    assert (found["id"], found["severity"]) == ("leasequeue.W015", "warning")
    assert found["docs"] == "docs/checks.md#jobs"
    assert document["notes"] == len(document["findings"]) - 1


def test_wrong_settings_are_a_finding(connection, leasequeue, settings):
    settings.LEASEQUEUE = {**settings.LEASEQUEUE, "MIDDLEWARE": ["nowhere.Nothing"]}
    ended = leasequeue("doctor", "--json")
    assert json.loads(ended.out)["findings"][0]["id"] == "leasequeue.E003"
    assert ended.code == 1
