"""Every example in a --help is run as it stands."""

from __future__ import annotations

import io
import json
import sys
from contextlib import nullcontext

import pytest

from django_leasequeue import add_schedule
from django_leasequeue.cli.table import TABLE, load
from django_leasequeue.models import Job
from tests.cli.examples import examples
from tests.importers.conftest import installed

KEYS = ["an example's key"]


@pytest.mark.parametrize("example", examples(), ids=lambda example: example.line)
def test_an_example_runs(queue_db, leasequeue, settings, monkeypatch, tmp_path, example):
    for job_id in (1, 2, 3):
        Job.objects.create(id=job_id, job_type="arranged", status="dead")
    if example.subcommand == "schedules":
        add_schedule("nightly", "arranged", every=86_400)
    if example.subcommand == "sign":
        settings.LEASEQUEUE = {**settings.LEASEQUEUE, "SIGNING_KEYS": KEYS}
    monkeypatch.chdir(tmp_path)
    stdin = io.TextIOWrapper(io.BytesIO(example.stdin.encode()))
    monkeypatch.setattr(sys, "stdin", stdin)
    if "--watch" in example.arguments:
        monkeypatch.setattr("time.sleep", interrupt)
        with pytest.raises(KeyboardInterrupt):
            leasequeue(*example.arguments)
        return
    with source_of(example, settings):
        ended = leasequeue(*example.arguments)
    assert ended.code in {0, 1} & set(load(example.subcommand).codes), ended.err
    if "--json" in example.arguments:
        json.loads(ended.out)


def source_of(example, settings):
    """Return what has the tables that an import reads, for as long as it is entered."""
    if example.subcommand != "import":
        return nullcontext()
    return installed(example.arguments[1], settings)


def interrupt(seconds):
    raise KeyboardInterrupt


@pytest.mark.parametrize("name", TABLE)
def test_every_sub_command_has_examples_and_is_what_the_table_says(name):
    command = load(name)
    assert command.name == name
    assert command.help.endswith(".")
    assert command.examples.strip()
    assert {0, 2} <= set(command.codes)


@pytest.mark.parametrize("name", TABLE)
def test_its_help_has_the_examples_and_the_exit_codes(queue_db, leasequeue, capsys, name):
    assert leasequeue(name, "--help").code == 0
    shown = capsys.readouterr().out
    for line in load(name).examples.strip().splitlines():
        assert f"  {line.strip()}\n" in shown + "\n"
    for code, meaning in load(name).codes.items():
        assert f"  {code}  {meaning}\n" in shown
