"""`leasequeue jobs`: filters, one job with its attempts, payloads only when asked for."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest

from django_leasequeue import enqueue, enqueue_many, job
from django_leasequeue.codec import summarize
from django_leasequeue.core.clock import read_now
from django_leasequeue.core.settle import Ending, settle
from django_leasequeue.models import Job
from django_leasequeue.outcomes import End, Outcome
from django_leasequeue.registry import registry
from tests.core.arrange import claim_one, write
from tests.statements import count_statements

SECRET = "the secret"


def ids_of(ended):
    assert ended.code == 0
    return [shown["id"] for shown in ended.document["jobs"]]


@pytest.fixture
def failed(queue_db, connection):
    """A job that failed once and waits for its next attempt."""
    job_id = enqueue("arranged", {"password": SECRET}, queue="mail", key="a key").id
    held = claim_one(connection)
    outcome = Outcome(End.FAILED, delay=3600, error=summarize(ValueError(SECRET)))
    settle(connection, [Ending(held.lease, outcome)])
    return job_id


def test_an_empty_database(queue_db, leasequeue):
    ended = leasequeue("jobs")
    assert (ended.code, len(ended.lines), ended.err) == (0, 1, "")
    assert leasequeue("jobs", "--json").document == {"jobs": [], "more": False}


def test_filters(queue_db, connection, leasequeue):
    old, mail, other, later = (
        enqueue("arranged", queue=queue, key=key, delay=delay).id
        for queue, key, delay in [
            ("default", None, None),
            ("mail", "a key", None),
            ("mail", None, None),
            ("default", None, 3600),
        ]
    )
    Job.objects.filter(pk=other).update(job_type="other", status="dead")
    Job.objects.filter(pk=old).update(created_at=read_now(connection) - timedelta(days=2))
    for options, found in {
        "": [later, other, mail, old],
        "--limit 2": [later, other],
        "--queue mail": [other, mail],
        "--type arranged": [later, mail, old],
        "--type other --queue mail": [other],
        "--status ready": [mail, old],
        "--status scheduled": [later],
        "--status dead": [other],
        "--status dead --type arranged": [],
        "--since 1d": [later, other, mail],
        "--since 3d": [later, other, mail, old],
        "--since 2042-01-01T00:00:00+01:00": [],
    }.items():
        assert ids_of(leasequeue("jobs", "--json", *options.split())) == found, options
    assert ids_of(leasequeue("jobs", "--json", "--key", "a key")) == [mail]
    assert ids_of(leasequeue("jobs", "--json", "--key", "another")) == []


def test_a_key_until_finished(queue_db, leasequeue):
    job_id = enqueue("arranged", key="a key", key_until="finished").id
    assert ids_of(leasequeue("jobs", "--json", "--key", "a key")) == [job_id]


def test_a_list(failed, leasequeue):
    titles, row = leasequeue("jobs").lines
    assert titles.split() == ["id", "type", "queue", "state", "attempts", "available", "error"]
    assert row.split()[:5] == [str(failed), "arranged", "mail", "retrying", "1/5"]
    assert row.split()[6:] == ["ValueError"]


def test_more_than_the_limit(queue_db, leasequeue):
    enqueue_many([("arranged", {"n": n}, {}) for n in range(3)])
    ended = leasequeue("jobs", "--limit", 2)
    assert (len(ended.lines), ended.err) == (3, "More jobs match; these are the newest 2.\n")
    assert leasequeue("jobs", "--limit", 2, "--json").document["more"] is True


def test_one_with_its_attempts(failed, leasequeue):
    document = leasequeue("jobs", failed, "--json").document
    (shown,) = document["jobs"]
    assert (shown["id"], shown["state"], shown["attempts"]) == (failed, "retrying", 1)
    (attempt,) = shown["history"]
    assert (attempt["number"], attempt["outcome"], attempt["error_class"]) == (
        1,
        "failed",
        "ValueError",
    )
    ended = leasequeue("jobs", failed)
    assert f"id: {failed}" in ended.lines
    assert ended.lines[ended.lines.index("attempts:") + 2].split()[:2] == ["1", "failed"]


def test_ids_in_the_order_given_and_unknown_ones_named(failed, leasequeue):
    other = enqueue("arranged").id
    ended = leasequeue("jobs", f"#{other}", 10**12, failed, other, "--json")
    assert (ended.code, ended.err) == (1, f"There is no job {10**12}.\n")
    assert [shown["id"] for shown in ended.document["jobs"]] == [other, failed]
    assert ended.document["missing"] == [10**12]


def test_payloads_are_shown_only_when_asked_for(failed, leasequeue):
    for options in [(), (failed,), ("--json",), (failed, "--json")]:
        ended = leasequeue("jobs", *options)
        assert SECRET not in ended.out + ended.err
        assert SECRET in leasequeue("jobs", *options, "--payload").out


def test_sensitive_fields_are_masked(failed, leasequeue):
    job("arranged", sensitive=("password",))(lambda **payload: None)
    try:
        for options in [(), (failed,), ("--json",), (failed, "--json")]:
            ended = leasequeue("jobs", *options, "--payload")
            assert SECRET not in ended.out
            assert "password" in ended.out
    finally:
        registry.remove("arranged")


@pytest.mark.only_on("sqlite")
def test_a_payload_that_is_no_json(failed, connection, leasequeue):
    connection.cursor().execute("PRAGMA ignore_check_constraints = ON")
    write(connection, failed, payload="{broken")
    connection.cursor().execute("PRAGMA ignore_check_constraints = OFF")
    assert leasequeue("jobs", failed, "--payload", "--json").document["jobs"][0]["payload"] == (
        "{broken"
    )


@pytest.mark.only_on("sqlite", "mariadb", "postgres")
def test_a_number_that_no_float_has(failed, connection, leasequeue):
    write(connection, failed, payload='{"n": 1e999}')
    for options in [(), (failed,), ("--json",), (failed, "--json")]:
        assert leasequeue("jobs", *options, "--payload").code == 0


@pytest.mark.only_on("sqlite", "postgres")
def test_a_time_that_python_cannot_hold(failed, connection, leasequeue):
    other = enqueue("arranged").id
    write(connection, failed, available_at="infinity")
    for options in [(), ("--payload",), (failed, other), ("--status", "retrying", "--payload")]:
        shown = leasequeue("jobs", *options, "--json").document["jobs"]
        by_id = {job["id"]: job for job in shown}
        assert by_id[failed]["available_at"] is None
        assert by_id[failed]["last_error"] == "ValueError"
        assert other not in by_id or by_id[other]["available_at"]
        assert leasequeue("jobs", *options).code == 0


def test_hostile_names_cannot_reach_a_terminal(queue_db, connection, leasequeue):
    name = "\x1b]0;owned\x07\x9b31m\u202e\r\nx\u2028"
    job_id = enqueue(name, {"a": name}, queue=name).id
    write(connection, job_id, last_error=name, leased_by=name)
    for options in [(), (job_id,), ("--payload",), (job_id, "--payload"), ("--json", "--payload")]:
        ended = leasequeue("jobs", *options)
        assert ended.code == 0
        assert all(line.isprintable() for line in ended.out.split("\n"))
    assert leasequeue("jobs", "--json").document["jobs"][0]["job_type"] == name
    for command in ("status", "schedules"):
        assert all(line.isprintable() for line in leasequeue(command).out.split("\n"))


@pytest.mark.parametrize(
    "options",
    [
        ("0",),
        ("-1",),
        ("x",),
        ("9" * 19,),
        ("9" * 5000,),
        ("\N{ARABIC-INDIC DIGIT ONE}",),
        ("--limit", "0"),
        ("--limit", "many"),
        ("--status", "lost"),
        ("--since", "yesterday"),
        ("--since", "2042-01-01"),
        ("--since", "2042-01-01T00:00:00"),
        ("--since", "999999999w"),
        ("--since", "9999999d"),
        ("--queue", ""),
        ("--queue", "q" * 65),
        ("--type", "a\x00"),
        ("--key", ""),
        ("1", "--queue", "mail"),
    ],
)
def test_what_is_refused(queue_db, leasequeue, options):
    ended = leasequeue("jobs", *options)
    assert ended.code != 0
    assert ended.out == ""
    assert "Traceback" not in ended.err


def test_it_only_reads(failed, connection, leasequeue):
    for options in [(), (failed,), ("--key", "a key"), ("--since", "1h", "--payload")]:
        with count_statements(connection) as statements:
            leasequeue("jobs", *options)
        assert all(sql.split("*/")[-1].split()[0] == "SELECT" for sql in statements), statements
        assert len(statements) < 6


def test_the_document_is_json_of_today(failed, leasequeue):
    text = leasequeue("jobs", "--json").out
    assert text.isascii()
    created = json.loads(text)["jobs"][0]["created_at"]
    assert created.endswith("+00:00")
