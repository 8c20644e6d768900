"""The sub-commands that change something: what they do, say and answer, and what they refuse."""

from __future__ import annotations

import io
import json
import sys
from datetime import timedelta

import pytest

from django_leasequeue import add_schedule, enqueue
from django_leasequeue.core.clock import read_now
from django_leasequeue.models import Job, Queue, Schedule
from tests.core.arrange import claim_one

REPORT = '{"tenant_id": "acme", "report_month": "2042-01"}'
SECRET = "the secret"


# enqueue


def test_enqueue_says_created_then_existing(queue_db, leasequeue):
    arguments = ("enqueue", "report.generate", REPORT, "--key", "k")
    created = leasequeue(*arguments)
    (job,) = Job.objects.all()
    assert (created.code, created.out, created.err) == (0, f"created {job.pk}\n", "")
    assert (job.queue_name, job.payload) == ("reports", json.loads(REPORT))
    assert leasequeue(*arguments).out == f"existing {job.pk}\n"
    assert leasequeue(*arguments, "--json").document == {"id": job.pk, "created": False}


def test_enqueue_takes_the_options_of_enqueue(queue_db, connection, leasequeue):
    options = (
        "--queue mail --priority -7 --delay 3600 --expires 7200 --max-attempts 2 --timeout 1.5"
    )
    ended = leasequeue("enqueue", "report.generate", REPORT, *options.split(), "--key", "k")
    assert ended.code == 0
    job = Job.objects.get()
    assert (job.queue_name, job.priority, job.max_attempts, job.timeout) == ("mail", -7, 2, 1.5)
    now = read_now(connection)
    assert timedelta(minutes=59) < job.available_at - now < timedelta(minutes=61)
    assert timedelta(minutes=119) < job.expires_at - now < timedelta(minutes=121)


def test_enqueue_at_a_time_with_a_key_that_ends_and_is_replaced(queue_db, leasequeue):
    def enqueued(moment):
        options = ("--run-after", moment, "--key-until", "finished", "--on-conflict", "replace")
        return leasequeue("enqueue", "report.generate", "--key", "k", *options)

    assert enqueued("2042-01-31T12:00:00+02:00").code == 0
    assert enqueued("2042-02-01T00:00:00Z").code == 0
    job = Job.objects.get()
    assert job.available_at.isoformat() == "2042-02-01T00:00:00+00:00"
    assert job.live_key is not None


def test_a_payload_from_standard_input(queue_db, leasequeue, monkeypatch):
    stdin = io.TextIOWrapper(io.BytesIO('{"name": "Zoë"}'.encode()), encoding="ascii")
    monkeypatch.setattr(sys, "stdin", stdin)
    assert leasequeue("enqueue", "report.generate", "-").code == 0
    assert Job.objects.get().payload == {"name": "Zoë"}


def test_bytes_that_are_no_text(queue_db, leasequeue, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b'{"a": "\xff\xfe"}')))
    ended = leasequeue("enqueue", "report.generate", "-")
    assert (ended.code, ended.err) == (2, "Malformed job payload: not JSON.\n")


def test_a_type_that_nobody_here_knows_is_enqueued_and_said(queue_db, leasequeue):
    ended = leasequeue("enqueue", "elsewhere", "{}")
    assert ended.code == 0
    assert "No handler here has this type" in ended.err
    assert Job.objects.get().job_type == "elsewhere"


@pytest.mark.parametrize(
    "arguments",
    [
        ("t", f'{{"a": "{SECRET}"'),
        ("t", f'["{SECRET}"]'),
        ("t", f'{{"a": "{SECRET}", "b": NaN}}'),
        ("t", f'{{"a": "{SECRET}\\u0000"}}'),
        ("t", f'{{"a": "{SECRET}\\ud800"}}'),
        ("t", f'{{"a": "{SECRET}", "b": {"[" * 100_000}'),
        ("t", ""),
        ("", "{}"),
        ("t" * 256, "{}"),
        ("t", "{}", "--queue", ""),
        ("t", "{}", "--queue", "q" * 65),
        ("t", "{}", "--key", ""),
        ("t", "{}", "--priority", "101"),
        ("t", "{}", "--priority", "high"),
        ("t", "{}", "--delay", "-1"),
        ("t", "{}", "--delay", "nan"),
        ("t", "{}", "--delay", "1", "--run-after", "2042-01-01T00:00:00Z"),
        ("t", "{}", "--run-after", "2042-01-01"),
        ("t", "{}", "--run-after", "9999-12-31T23:59:59-12:00"),
        ("t", "{}", "--expires", "-1"),
        ("t", "{}", "--max-attempts", "0"),
        ("t", "{}", "--timeout", "0"),
        ("t", "{}", "--key-until", "tomorrow"),
        ("t", "{}", "--on-conflict", "ignore"),
        ("t", "{}", "--database", "nowhere"),
    ],
)
def test_what_enqueue_refuses(queue_db, leasequeue, arguments):
    ended = leasequeue("enqueue", *arguments)
    assert ended.code != 0
    assert ended.out == ""
    assert SECRET not in ended.err
    assert ended.err.count("\n") == 1
    assert not Job.objects.exists()


def test_a_taken_key_with_raise_is_refused_with_the_holder_named(queue_db, leasequeue):
    holder = enqueue("report.generate", key="k").id
    ended = leasequeue("enqueue", "report.generate", "--key", "k", "--on-conflict", "raise")
    assert (ended.code, ended.out) == (2, "")
    assert str(holder) in ended.err


# cancel


def test_cancel_names_what_became_of_each(queue_db, connection, leasequeue):
    ready, running, done, gone = (enqueue("arranged", {"n": n}).id for n in range(4))
    Job.objects.filter(pk=done).update(status="done")
    Job.objects.filter(pk=gone).update(status="cancelled")
    Job.objects.filter(pk=ready).update(available_at=read_now(connection) + timedelta(hours=1))
    claim_one(connection)
    unknown = 10**15
    ended = leasequeue("cancel", running, ready, unknown, done, gone)
    assert ended.code == 1
    assert ended.lines == [
        f"{ready}: cancelled",
        f"{running}: cancelled",
        f"{done}: left alone, it is done",
        f"{gone}: left alone, it is cancelled",
        f"{unknown}: there is no such job",
    ]
    assert leasequeue("cancel", running, unknown, "--json").document == {
        "cancelled": [],
        "unchanged": [{"id": running, "status": "cancelled"}],
        "missing": [unknown],
    }
    assert leasequeue("cancel", ready, gone).code == 0


@pytest.mark.parametrize("arguments", [(), ("x",), ("1", "-2"), (str(2**63),)])
def test_what_cancel_refuses(queue_db, leasequeue, arguments):
    job_id = enqueue("arranged").id
    ended = leasequeue("cancel", job_id, *arguments) if arguments else leasequeue("cancel")
    assert ended.code != 0
    assert Job.objects.get().status == "ready"


# pause, resume


def test_pause_and_resume_say_whether_they_changed_anything(queue_db, leasequeue, monkeypatch):
    monkeypatch.setattr("getpass.getuser", lambda: "ada")
    enqueue("arranged", queue="mail")
    assert leasequeue("pause", "mail", "--reason", "no server").out == "mail: paused\n"
    row = Queue.objects.get()
    assert (row.name, row.paused_by, row.pause_reason) == ("mail", "ada", "no server")
    again = leasequeue("pause", "mail", "--by", "bob")
    assert (again.code, again.out, again.err) == (0, "mail: was paused already\n", "")
    assert Queue.objects.get().paused_by == "ada"
    assert leasequeue("resume", "mail").out == "mail: resumed\n"
    assert leasequeue("resume", "mail").out == "mail: was not paused\n"
    assert leasequeue("pause", "mail", "--json").document == {"queue": "mail", "changed": True}
    assert leasequeue("resume", "mail", "--json").document == {"queue": "mail", "changed": True}


def test_a_queue_without_jobs_is_paused_with_a_warning(queue_db, leasequeue, monkeypatch):
    monkeypatch.setattr("getpass.getuser", nameless)
    ended = leasequeue("pause", "mial")
    assert (ended.code, ended.out) == (0, "mial: paused\n")
    assert "is its name right?" in ended.err
    assert Queue.objects.get().paused_by == ""


def nameless():
    raise KeyError("getpwuid(): uid not found")


@pytest.mark.parametrize("name", ["", "q" * 65, "a\x00b"])
@pytest.mark.parametrize("command", ["pause", "resume"])
def test_no_queue_has_such_a_name(queue_db, leasequeue, command, name):
    assert leasequeue(command, name).code != 0
    assert not Queue.objects.exists()


# recover, schedules, sign


def test_recover_takes_back_what_expired(queue_db, connection, leasequeue):
    assert leasequeue("recover").out == "recovered: 0\n"
    for n in range(2):
        enqueue("arranged", {"n": n})
    for _ in range(2):
        claim_one(connection)
    past = read_now(connection) - timedelta(seconds=1)
    Job.objects.update(lease_until=past)
    assert leasequeue("recover", "--json").document == {"recovered": 2}
    assert {*Job.objects.values_list("status", flat=True)} == {"ready"}


def test_schedules(queue_db, leasequeue):
    assert leasequeue("schedules", "--json").document == {"schedules": [], "more": False}
    Schedule.objects.create(name="nightly", job_type="t", cron="0 3 * * *", timezone="Asia/Tokyo")
    Schedule.objects.create(name="often", job_type="t", every=90, enabled=False)
    titles, *rows = leasequeue("schedules").lines
    assert titles.split()[:4] == ["name", "type", "queue", "when"]
    assert rows[0].split() == [
        "nightly",
        "t",
        "default",
        *["0", "3", "*", "*", "*"],
        "Asia/Tokyo",
        "yes",
        "-",
        "-",
    ]
    assert rows[1].split() == ["often", "t", "default", "every", "90", "s", "UTC", "no", "-", "-"]
    ended = leasequeue("schedules", "--limit", 1)
    assert (len(ended.lines), ended.err.count("\n")) == (2, 1)
    document = leasequeue("schedules", "--limit", 1, "--json").document
    assert ([row["name"] for row in document["schedules"]], document["more"]) == (["nightly"], True)


def test_a_schedule_is_shown_disabled_enabled_and_run(queue_db, leasequeue):
    add_schedule("nightly", "t", cron="0 3 * * *", timezone="Asia/Tokyo")
    *_table, last = leasequeue("schedules", "nightly").lines
    assert last.strip().endswith("T03:00:00+09:00")
    document = leasequeue("schedules", "nightly", "--json").document
    assert (document["schedule"]["name"], len(document["next_ticks"])) == ("nightly", 5)
    assert leasequeue("schedules", "nightly", "--disable").out == "nightly: disabled\n"
    assert leasequeue("schedules", "nightly", "--disable").out == "nightly: was disabled already\n"
    assert leasequeue("schedules", "nightly", "--enable", "--json").document["changed"] is True
    assert leasequeue("schedules", "nightly", "--run", "--json").document["created"] is True
    assert Job.objects.get().schedule == "nightly"
    for wrong in (("nowhere",), ("nowhere", "--run"), ("--run",), ("nightly", "--run", "--enable")):
        assert leasequeue("schedules", *wrong).code == 2
    assert Job.objects.count() == 1


def test_sign_answers_in_json(queue_db, leasequeue, settings):
    enqueue("arranged")
    assert leasequeue("sign").code == 2
    settings.LEASEQUEUE = {**settings.LEASEQUEUE, "SIGNING_KEYS": ["k" * 16]}
    assert leasequeue("sign", "--json").document["signed"] == 1
