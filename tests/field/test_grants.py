"""S1, I: every duty under the account that docs/deployment/grants-*.sql gives it, and no more."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from urllib.parse import urlsplit

import pytest
from django.conf import settings
from django.db import connections, transaction
from django.test import override_settings
from django.utils import timezone

from django_leasequeue import (
    Fixed,
    add_schedule,
    cancel,
    disable_schedule,
    edit_schedule,
    enable_schedule,
    enqueue,
    enqueue_many,
    pause,
    requeue,
    reschedule,
    resume,
    run_schedule,
)
from django_leasequeue.core.bulk import cancel_many, requeue_many
from django_leasequeue.core.bulk_filter import JobFilter
from django_leasequeue.core.declared import sync_declared
from django_leasequeue.core.inspection.server import NotPermitted
from django_leasequeue.core.operate import recover
from django_leasequeue.core.prune import prune
from django_leasequeue.core.sessions import end_statement, session_id
from django_leasequeue.declaration import Declaration
from django_leasequeue.doctor import tables
from django_leasequeue.doctor.case import Case
from django_leasequeue.doctor.privileges import NEEDED
from django_leasequeue.grid import Rule
from django_leasequeue.models import BulkRun, Job, Schedule, Worker
from reports.models import GeneratedReport
from tests.cli.conftest import leasequeue
from tests.core.arrange import expire, outcomes, running
from tests.core.reports import make_report
from tests.field.grants import NAMES, Accounts, aliases, made, run
from tests.field.workers import drain
from tests.process import rows

pytestmark = pytest.mark.only_on("mariadb", "mysql", "postgres")

__all__ = ["leasequeue"]

LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)
DAY = timedelta(days=1)
REFUSED = r"(?i)denied|must be owner"


@pytest.fixture
def accounts(queue_db) -> Iterator[Accounts]:
    """All accounts, each also an alias of DATABASES."""
    found = Accounts(queue_db.settings_dict["NAME"], queue_db.vendor)
    with made(queue_db, found, found.statements()), aliases(found):
        yield found


def url(database_url: str, accounts: Accounts, duty: str) -> str:
    parts = urlsplit(database_url)
    login = f"{accounts.user(duty)}:{accounts.password(duty)}"
    return parts._replace(netloc=f"{login}@{parts.netloc.rpartition('@')[2]}").geturl()


def test_an_enqueuer(accounts):
    first = enqueue("grants.any", {"n": 1}, key="a", using="enqueuer")
    assert first.created
    assert not enqueue("grants.any", {"n": 1}, key="a", using="enqueuer").created
    made_here = enqueue_many([("grants.any", {}, {"key": key}) for key in "ab"], using="enqueuer")
    assert [one.created for one in made_here] == [False, True]
    with transaction.atomic(using="enqueuer"):
        assert not enqueue("grants.any", key="b", using="enqueuer").created
    one_live = enqueue("grants.any", key="c", key_until="finished", using="enqueuer")
    again = enqueue("grants.any", key="c", key_until="finished", using="enqueuer")
    assert (again.created, again.id) == (False, one_live.id)


def test_a_worker_in_one_process(accounts, declare, short_leases):
    """Claim, renew, effects, checkpoints, complete, retry, bury, recover, enqueue: no more."""

    @declare("grants.all", takes_context=True, backoff=Fixed(0))
    def everything(context):
        context.checkpoint({"attempt": context.attempt})
        context.progress(0.5, "half")
        with context.effect("once"):
            pass
        if context.attempt == 1:
            raise ValueError
        enqueue("grants.after", using=context.using)
        with context.complete({"n": 1}):
            make_report(f"job-{context.job_id}")

    buried = []
    declare("grants.after")(lambda: None)
    declare("grants.dies", failed=lambda context, error: buried.append(context.job_id))(
        lambda: 1 / 0
    )
    declare("arranged")(lambda n: None)
    add_schedule("due", "grants.after", every=86_400)
    Schedule.objects.update(next_tick=Rule.of(every=86_400).after(timezone.now() - DAY))
    (lost,) = running(connections["default"])
    expire(connections["default"], lost.job_id)
    done = enqueue("grants.all").id
    dead = enqueue("grants.dies", max_attempts=1).id
    drain(lease=short_leases, database="worker")
    assert outcomes(lost.job_id) == ["expired", "completed"]
    assert outcomes(done) == ["failed", "completed"]
    assert (outcomes(dead), buried) == (["failed"], [dead])
    assert GeneratedReport.objects.count() == 1
    ended = Job.objects.filter(job_type="grants.after", status="done")
    assert sorted(ended.values_list("schedule", flat=True)) == ["", "due"]


def test_a_worker_brings_in_what_its_code_declares(accounts):
    for every in (60, 90):
        declared = Declaration(handler=lambda: None, name="grants.declared", every=every)
        assert sync_declared(connections["worker"], [declared]).changed == ["grants.declared"]
    assert Schedule.objects.get(name="grants.declared").every == 90


def test_a_worker_with_children(accounts, database_url, worker_process):
    done = enqueue("proc.report").id
    dead = enqueue("proc.fail", max_attempts=1).id
    worker = worker_process("--drain", env={"DATABASE_URL": url(database_url, accounts, "worker")})
    assert worker.wait() == 0, worker.log()
    assert (rows.outcomes(done), rows.job(dead).status) == (["completed"], "dead")
    assert not worker.named("worker_fatal")


def test_an_operator(accounts, queue_db):
    (job,) = running(queue_db)
    (lost,) = running(queue_db)
    expire(queue_db, lost.job_id)
    assert recover(using="operator") == 1
    assert cancel(job.job_id, using="operator") == [job.job_id]
    assert requeue(job.job_id, using="operator") == [job.job_id]
    assert reschedule(job.job_id, delay=60, using="operator") == [job.job_id]
    assert pause("default", by="me", using="operator")
    add_schedule("mine", "grants.any", every=60, using="operator")
    assert edit_schedule("mine", every=90, using="operator").every == 90
    assert disable_schedule("mine", using="operator")
    assert enable_schedule("mine", using="operator")
    assert run_schedule("mine", using="operator").created
    assert resume("default", using="operator")


def test_ending_a_statement_needs_no_grant(accounts, queue_db, second_connection):
    """KILL QUERY, pg_cancel_backend: an account's own sessions are its own, others' are not."""
    worker = connections["worker"]
    own = second_connection()
    own.settings_dict = worker.settings_dict
    own.ensure_connection()
    assert end_statement(worker, session_id(own))
    assert not end_statement(worker, session_id(queue_db))
    own.close()


def test_an_operator_of_many(accounts, queue_db):
    ids = [job.job_id for job in running(queue_db, 3)]
    assert cancel_many(JobFilter(statuses=("reserved",)), using="operator").changed == 3
    run_of = requeue_many(JobFilter(statuses=("cancelled",)), using="operator")
    assert (run_of.changed, run_of.state) == (3, "finished")
    assert cancel(ids, using="operator") == ids


def test_a_pruner(accounts, queue_db, declare):
    """Jobs, attempts and effects, workers and bulk runs; under a lock that a live job outlasts."""
    Worker.objects.create(name="gone", seen_at=LONG_AGO)
    BulkRun.objects.create(operation="cancel", state="done", finished_at=LONG_AGO)
    (first, second) = running(queue_db, 2)
    cancel(first.job_id)
    assert prune(older_than=0, using="pruner").jobs == 1
    assert list(Job.objects.values_list("pk", flat=True)) == [second.job_id]
    cancel(second.job_id)
    with override_settings(LEASEQUEUE={**settings.LEASEQUEUE, "RETENTION": {"cancelled": 0}}):
        done = prune(using="pruner")
    assert (done.jobs, done.attempts, done.workers, done.bulk_runs) == (1, 1, 1, 1)


@pytest.mark.parametrize("command", [("status",), ("jobs",), ("health",), ("schedules",)])
def test_a_monitor(accounts, queue_db, leasequeue, command):
    enqueue("arranged", {"n": 1})
    ended = leasequeue(*command, "--database", "monitor")
    assert (ended.code, ended.err) == (0, ""), ended


ALLOWED_TO_READ = "SELECT count(*) FROM leasequeue_job"
#: What nobody but the named duties may do.
STATEMENTS = {
    "DELETE FROM leasequeue_job": {"pruner", "migrator"},
    "DELETE FROM leasequeue_jobattempt": {"pruner", "migrator"},
    "UPDATE leasequeue_job SET status = 'done'": {"worker", "operator", "migrator"},
    "UPDATE leasequeue_jobattempt SET error_text = ''": {"operator", "migrator"},
    "UPDATE leasequeue_queue SET paused_by = ''": {"operator", "migrator"},
    "UPDATE leasequeue_deadgroup SET note = ''": {"operator", "migrator"},
    "UPDATE generated_reports SET tenant_id = ''": {"migrator"},
    "INSERT INTO leasequeue_job (job_type) VALUES ('a')": {
        "enqueuer",
        "worker",
        "operator",
        "migrator",
    },
    "TRUNCATE TABLE leasequeue_jobeffect": {"migrator"},
    "ALTER TABLE leasequeue_job ADD COLUMN extra int": {"migrator"},
    "DROP TABLE leasequeue_jobeffect": {"migrator"},
    "CREATE TABLE leasequeue_extra (id int)": {"migrator"},
    "SELECT password FROM auth_user": {"migrator"},
}


@pytest.mark.parametrize("duty", [name for name in NAMES if name != "migrator"])
def test_no_account_may_do_more(accounts, queue_db, duty):
    login = {"user": accounts.user(duty), "password": accounts.password(duty)}
    with rows.raw_cursor(queue_db, **login) as cursor:
        cursor.execute(ALLOWED_TO_READ)
        for statement, duties in STATEMENTS.items():
            if duty in duties:
                cursor.execute(statement)
                continue
            with pytest.raises(queue_db.Database.Error, match=REFUSED):
                cursor.execute(statement)


def test_doctor_asks_for_what_the_file_grants(accounts, leasequeue, queue_db):
    granted: dict[str, set[str]] = {}
    for statement in accounts.statements():
        found = re.match(r"GRANT (.+) ON (?:\S+\.)?(leasequeue_\w+) TO \S+_worker\b", statement)
        if found:
            granted[found[2]] = set(found[1].split(", "))
    assert granted == NEEDED
    if queue_db.vendor == "postgresql":  # the tests before this one have left dead row versions
        run(queue_db, ["VACUUM leasequeue_job"])
    told = leasequeue("doctor", "--json", "--database", "worker").document
    # W003: an alias of these tests is not the setting's.
    wrong = {one["id"] for one in told["findings"] if one["severity"] != "note"}
    assert wrong <= {"leasequeue.W003"}, told
    assert "leasequeue.I005" not in {one["id"] for one in told["findings"]}


def test_a_table_that_the_account_may_not_see_is_not_missing(accounts, queue_db):
    """MySQL and MariaDB do not list it; what is truly missing is found all the same."""
    case = Case("worker", connections["worker"], connections["worker"])
    with pytest.raises(NotPermitted, match="leasequeue_bulkrun, leasequeue_deadgroup"):
        list(tables.columns(case))
    with pytest.raises(NotPermitted, match="django_migrations"):
        list(tables.migrations(case))
    assert len(case.tables) == len(NEEDED)


@pytest.fixture
def empty_database(queue_db) -> Iterator[str]:
    """The name of a database without tables."""
    name = f"{queue_db.settings_dict['NAME']}_new"
    quoted = queue_db.ops.quote_name(name)
    run(queue_db, [f"DROP DATABASE IF EXISTS {quoted}", f"CREATE DATABASE {quoted}"])
    yield name
    run(queue_db, [f"DROP DATABASE {quoted}"])


def test_the_migrator(queue_db, empty_database, database_url, manage, second_connection):
    accounts = Accounts(empty_database, queue_db.vendor)
    there = second_connection()
    there.settings_dict = {**there.settings_dict, "NAME": empty_database}
    environment = {"DATABASE_URL": url(database_url, accounts, "migrator")}
    parts = urlsplit(environment["DATABASE_URL"])
    environment["DATABASE_URL"] = parts._replace(path=f"/{empty_database}").geturl()
    with made(there, accounts, accounts.first()):
        ended = manage("migrate", "leasequeue", "--verbosity", "0", env=environment)
        assert (ended.returncode, ended.stderr) == (0, "")
        ended = manage("migrate", "leasequeue", "zero", "--verbosity", "0", env=environment)
        assert (ended.returncode, ended.stderr) == (0, "")
    there.close()
