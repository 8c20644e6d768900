"""run_jobs() in every kind of test: the worker's own ways on the test's connection."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import DatabaseError, connection, transaction
from django.test import TestCase, TransactionTestCase

from django_leasequeue import Fixed, JobError, LeaseLost, Reject, Skip, Snooze, enqueue, job
from django_leasequeue.models import Job, JobAttempt
from django_leasequeue.registry import registry
from django_leasequeue.testing import advance, freeze, lose_lease, run_jobs
from reports.models import GeneratedReport


@pytest.fixture(autouse=True)
def _forget():
    before = set(registry)
    yield
    for kind in set(registry) - before:
        registry.remove(kind.name)


def report(key):
    return GeneratedReport.objects.create(
        idempotency_key=f"{key:064}", tenant_id="acme", report_month="2042-01", result_json={}
    )


class Common:
    """What holds in a TestCase and in a TransactionTestCase alike."""

    def test_what_is_due_runs_and_what_that_enqueues(self):
        @job("outer")
        def outer(depth):
            if depth:
                enqueue("outer", {"depth": depth - 1})
            return depth

        enqueue("outer", {"depth": 2})
        ran = run_jobs()
        assert [one.job.result for one in ran] == [2, 1, 0]
        assert {one.outcome for one in ran} == {"completed"}
        assert run_jobs() == []

    def test_complete_commits_rows_and_job(self):
        @job("completes", takes_context=True)
        def completes(context):
            with context.complete({"n": 1}):
                report(1)

        made = enqueue("completes")
        ((after, outcome, error),) = run_jobs()
        assert (after.pk, outcome, error) == (made.pk, "completed", None)
        assert (after.status, after.result) == ("done", {"n": 1})
        assert GeneratedReport.objects.count() == 1

    def test_a_failed_completion_keeps_nothing_of_it(self):
        @job("fails", takes_context=True, max_attempts=1)
        def fails(context):
            report(1)
            with context.complete():
                report(2)
                raise JobError("in the middle")

        enqueue("fails")
        ((after, outcome, error),) = run_jobs()
        assert (after.status, outcome) == ("dead", "failed")
        assert isinstance(error, JobError)
        # As in a worker: the row before was in autocommit mode, and stays.
        assert [row.idempotency_key[-1] for row in GeneratedReport.objects.all()] == ["1"]

    def test_a_broken_statement_ends_the_attempt_alone(self):
        @job("breaks", max_attempts=2, backoff=Fixed(0))
        def breaks():
            with connection.cursor() as cursor:
                cursor.execute("SELECT nonsense FROM nowhere")

        enqueue("breaks")
        ran = run_jobs()
        assert [one.outcome for one in ran] == ["failed", "failed"]
        assert all(isinstance(one.error, DatabaseError) for one in ran)
        assert Job.objects.get().status == "dead"

    def test_a_transaction_that_a_handler_left_open_ends_with_its_attempt(self):
        @job("opens", max_attempts=1)
        def opens():
            transaction.atomic().__enter__()
            report(1)
            transaction.atomic().__enter__()

        before = len(connection.atomic_blocks), len(connection.savepoint_ids)
        enqueue("opens")
        ((after, outcome, _error),) = run_jobs()
        assert (after.status, outcome) == ("dead", "failed")
        assert (len(connection.atomic_blocks), len(connection.savepoint_ids)) == before
        assert not GeneratedReport.objects.exists()

    def test_ends_on_purpose(self):
        @job("ends")
        def ends(how):
            raise {"skip": Skip("s"), "snooze": Snooze(60), "reject": Reject("r")}[how]

        for how in ("skip", "snooze", "reject"):
            enqueue("ends", {"how": how})
        assert [one.outcome for one in run_jobs()] == ["skipped", "snoozed", "rejected"]
        assert [one.status for one in Job.objects.order_by("pk")] == ["done", "ready", "dead"]

    def test_on_commit_callbacks_run_when_the_handler_ends(self):
        seen = []

        @job("calls")
        def calls():
            with transaction.atomic():
                transaction.on_commit(lambda: seen.append(Job.objects.get().status))
                transaction.on_commit(lambda: enqueue("next"))

        @job("next")
        def following():
            seen.append("next")

        enqueue("calls")
        run_jobs()
        assert seen == ["reserved", "next"]

    def test_what_a_handler_in_no_transaction_does_on_commit_is_done_at_once(self):
        seen = []

        @job("saves", takes_context=True)
        def saves(context):
            context.checkpoint({"place": 1})
            transaction.on_commit(lambda: seen.append("called"))
            return [context.last_checkpoint, list(seen)]

        enqueue("saves")
        run_jobs()
        assert Job.objects.get().result == [{"place": 1}, ["called"]]

    def test_an_on_commit_callback_that_raises_leaves_no_job_unsettled(self):
        @job("raises", max_attempts=1)
        def raises():
            with transaction.atomic():
                transaction.on_commit(lambda: 1 / 0)

        @job("completes", takes_context=True)
        def completes(context):
            with context.complete():
                transaction.on_commit(lambda: 1 / 0)

        enqueue("raises")
        enqueue("completes")
        first, second = run_jobs()
        assert (first.outcome, first.job.status, type(first.error)) == (
            "failed",
            "dead",
            ZeroDivisionError,
        )
        assert (second.outcome, second.job.status, second.error) == ("completed", "done", None)

    def test_the_failed_hook_runs(self):
        buried = []

        @job("dies", max_attempts=1, failed=lambda context, error: buried.append(str(error)))
        def dies():
            raise JobError("for good")

        enqueue("dies")
        run_jobs()
        assert buried == ["JobError: for good"]
        assert Job.objects.get().lease_until is None

    def test_a_lost_lease(self):
        @job("loses", takes_context=True)
        def loses(context):
            lose_lease(context.job_id)
            with context.complete():
                report(1)

        enqueue("loses")
        ((after, _outcome, error),) = run_jobs()
        assert isinstance(error, LeaseLost)
        assert (after.status, GeneratedReport.objects.count()) == ("reserved", 0)
        Job.objects.update(status="done", lease_token=None, lease_until=None)

    def test_later_jobs_and_retries_wait_for_the_clock(self):
        runs = []

        @job("later", max_attempts=2, backoff=Fixed(600))
        def later():
            runs.append(1)
            raise JobError("again")

        enqueue("later", delay=timedelta(hours=1))
        assert run_jobs() == []
        with freeze() as clock:
            clock.advance(3601)
            assert len(run_jobs()) == 1
            clock.advance(599)
            assert run_jobs() == []
            clock.advance(2)
            assert len(run_jobs()) == 1
        assert len(runs) == 2

    def test_a_clock_that_goes_on(self):
        enqueue("unknown", delay=100)
        with advance(50):
            assert run_jobs() == []
        with advance(101):
            assert [one.outcome for one in run_jobs()] == ["rejected"]
        assert run_jobs() == []

    def test_limits_and_queues(self):
        @job("plain")
        def plain():
            pass

        for queue in ("a", "b", "b"):
            enqueue("plain", queue=queue)
        assert [one.job.queue_name for one in run_jobs(queues="b", limit=1)] == ["b"]
        assert [one.job.queue_name for one in run_jobs(queues=["b", "a"])] == ["b", "a"]

    def test_errors_can_be_raised(self):
        @job("raises", max_attempts=1)
        def raises():
            raise KeyError("mine")

        enqueue("raises")
        with pytest.raises(KeyError, match="mine"):
            run_jobs(raise_errors=True)
        assert Job.objects.get().status == "dead"
        assert JobAttempt.objects.get().outcome == "failed"

    def test_the_codec_is_the_workers(self):
        """I16: what a handler gets has been JSON, whatever it was before."""
        got = []

        @job("codec")
        def codec(value):
            got.append(value)

        enqueue("codec", {"value": {"b": 2.0, "a": ["x", None, True]}})
        run_jobs()
        assert got == [{"a": ["x", None, True], "b": 2.0}]
        with pytest.raises(ValueError, match="set"):
            enqueue("codec", {"value": {1}})


class InTestCase(Common, TestCase):
    def test_under_captured_callbacks(self):
        seen = []

        @job("captured")
        def captured():
            transaction.on_commit(lambda: seen.append("handler"))

        with self.captureOnCommitCallbacks(execute=True) as callbacks:
            transaction.on_commit(lambda: seen.append("test"))
            enqueue("captured")
            run_jobs()
            assert seen == ["handler"]
        assert seen == ["handler", "test"]
        assert len(callbacks) == 1

    def test_enqueued_on_commit(self):
        seen = []

        @job("on_commit")
        def on_commit():
            seen.append(1)

        with self.captureOnCommitCallbacks(execute=True):
            transaction.on_commit(lambda: enqueue("on_commit"))
        run_jobs()
        assert seen == [1]


class InTransactionTestCase(Common, TransactionTestCase):
    def test_inside_a_block_of_the_test(self):
        @job("inside")
        def inside():
            report(1)

        with pytest.raises(RuntimeError), transaction.atomic():  # noqa: PT012
            enqueue("inside")
            assert [one.outcome for one in run_jobs()] == ["completed"]
            raise RuntimeError
        assert (Job.objects.count(), GeneratedReport.objects.count()) == (0, 0)
