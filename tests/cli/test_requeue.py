"""`leasequeue requeue`: which jobs, what it says, and what it will not do unasked."""

from __future__ import annotations

import io
import sys

import pytest
from django.core.management import call_command

from django_leasequeue import enqueue
from django_leasequeue.core.bulk import start
from django_leasequeue.core.bulk_filter import JobFilter
from django_leasequeue.core.bulk_plan import Options
from django_leasequeue.models import BulkRun
from tests.core.bulk import bury, statuses

pytestmark = pytest.mark.usefixtures("queue_db")


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_by_ids(leasequeue):
    dead = [*bury(1), *bury(1, status="cancelled")]
    ready = enqueue("t").id
    ended = leasequeue("requeue", *dead)
    assert (ended.code, ended.out) == (0, "2 jobs were requeued.\n")
    ended = leasequeue("requeue", ready, 10**9)
    text = "0 jobs were requeued; left out: 1 gone, 1 other_status.\n"
    assert (ended.code, ended.out) == (1, text)
    assert BulkRun.objects.filter(state="finished").count() == 2


@pytest.mark.parametrize(
    "arguments",
    [
        "--queue mail",
        "--type wanted",
        "--group ffffffffffffffff",
        "--died-after 2021-01-31T12:00:00Z --died-before 2021-01-31T13:00:00+00:00",
        "--status cancelled",
    ],
)
def test_by_condition(leasequeue, arguments):
    columns = {
        "--queue": {"queue_name": "mail"},
        "--type": {"job_type": "wanted"},
        "--group": {"fingerprint": "f" * 16},
        "--died-after": {"finished_at": "2021-01-31T12:30:00+00:00"},
        "--status": {"status": "cancelled"},
    }[arguments.split()[0]]
    wanted, others = bury(2, **columns), bury(2)
    ended = leasequeue("requeue", *arguments.split(), "--dry-run", "--json")
    assert ended.document == {"dry_run": True, "changed": 2, "left_out": {}}
    assert not BulkRun.objects.exists()
    assert statuses([*wanted, *others]).count("ready") == 0
    ended = leasequeue("requeue", *arguments.split(), "--json")
    assert ended.code == 0
    assert ended.document["changed"] == 2
    assert statuses(wanted) == ["ready"] * 2
    assert statuses(others) == ["dead"] * 2


def test_more_than_a_hundred_want_a_yes(leasequeue, monkeypatch):
    ids = bury(101)
    monkeypatch.setattr(sys, "stdin", io.StringIO("y\n"))
    ended = leasequeue("requeue", "--all")
    assert ended.code == 2
    assert "101 jobs match: give --yes" in ended.err
    monkeypatch.setattr(sys, "stdin", Terminal("n\n"))
    assert leasequeue("requeue", "--all").code == 2
    assert not BulkRun.objects.exists()
    monkeypatch.setattr(sys, "stdin", Terminal("y\n"))
    assert leasequeue("requeue", "--all").out == "101 jobs were requeued.\n"
    assert statuses(ids) == ["ready"] * 101
    bury(101)
    ended = leasequeue("requeue", "--all", "--yes")
    newest = BulkRun.objects.latest("pk").pk
    assert f"bulk run {newest}: 101/101" in ended.err


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ("", "Say which jobs"),
        ("--all --queue q", "no other conditions"),
        ("1 --queue q", "stand for themselves"),
        ("--all --rate 0", "rate"),
        ("--all --canary 201", "canary"),
        ("--all --spread 9999999", "spread is seconds"),
        ("--all --spread 9999999 --dry-run", "spread is seconds"),
        ("--all --died-after yesterday", "no time with a zone"),
        ("--resume 77", "there is no bulk run 77"),
        ("--cancel 77", "There is no bulk run 77"),
        ("--list --resume 1", "not allowed with"),
        ("one", "no job id"),
    ],
)
def test_what_is_refused(leasequeue, arguments, says):
    (one,) = bury(1)
    ended = leasequeue("requeue", *arguments.split())
    assert ended.code  # 2 in a process; what argparse refuses is 1 for call_command
    assert says in ended.err
    assert statuses([one]) == ["dead"]
    assert not BulkRun.objects.exists()


def test_a_canary_that_has_not_ended(leasequeue):
    bury(5)
    ended = leasequeue("requeue", "--all", "--canary", "2", "--canary-wait", "0")
    run = BulkRun.objects.get().pk
    assert ended.code == 1
    assert ended.lines == [
        "2 jobs were requeued.",
        f"Run {run} was stopped: of those that went first: 2 ready.",
        f"To look again and go on: manage.py leasequeue requeue --resume {run}",
    ]


def test_runs_are_listed_carried_on_and_ended(leasequeue):
    ids = bury(3)
    first = start("requeue", JobFilter(ids=ids), Options(), by="ada")
    second = start("requeue", JobFilter(queue="mail"), Options(rate=1), by="\x1b[2J")
    listed = leasequeue("requeue", "--list")
    assert listed.code == 0
    assert [line.split()[:3] for line in listed.lines[1:]] == [
        [str(second.pk), "requeue", "running"],
        [str(first.pk), "requeue", "running"],
    ]
    assert "\x1b" not in listed.out
    assert leasequeue("requeue", "--cancel", second.pk).out == f"run {second.pk}: cancelled\n"
    assert leasequeue("requeue", "--cancel", second.pk).out == f"run {second.pk}: it was over\n"
    assert leasequeue("requeue", "--resume", first.pk).out == "3 jobs were requeued.\n"
    ended = leasequeue("requeue", "--resume", second.pk)
    assert ended.code == 2
    assert "is cancelled: start a new one" in ended.err
    documents = leasequeue("requeue", "--list", "--json").document["runs"]
    assert [one["state"] for one in documents] == ["cancelled", "finished"]
    assert documents[1]["filter"]["ids"] == " ".join(map(str, ids))


def test_ctrl_c_says_how_to_go_on(monkeypatch):
    bury(1)

    def interrupt(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr("django_leasequeue.cli.requeue.go_on", interrupt)
    err = io.StringIO()
    with pytest.raises(KeyboardInterrupt):
        call_command("leasequeue", "requeue", "--all", stderr=err)
    assert f"requeue --resume {BulkRun.objects.get().pk}\n" in err.getvalue()
