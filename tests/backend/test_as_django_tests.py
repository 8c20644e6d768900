"""What Django's own tests ask of a backend and of its tasks, asked of this one.

After the classes TaskTestCase, ImmediateBackendTestCase, DummyBackendTestCase and
CustomBackendTestCase of its `tests/tasks`, written anew.
"""

from __future__ import annotations

import dataclasses
import logging
from datetime import datetime, timedelta

import pytest
from asgiref.sync import async_to_sync, sync_to_async
from django.core.exceptions import FieldError, ImproperlyConfigured
from django.db import transaction
from django.test import TestCase, TransactionTestCase, override_settings
from django.utils import timezone

from django_leasequeue.backend import LeaseQueueBackend
from django_leasequeue.backend.compat import (
    InvalidTask,
    TaskResultDoesNotExist,
    TaskResultMismatch,
    TaskResultStatus,
    task,
    task_backends,
    task_enqueued,
)
from django_leasequeue.models import Job
from django_leasequeue.testing import run_jobs
from tests.backend import sample

default = {"BACKEND": "django_leasequeue.backend.LeaseQueueBackend", "QUEUES": []}


class TaskTests(TestCase):
    """Tasks: declared, varied, called, enqueued, found again."""

    def test_the_backend_of_the_settings(self):
        assert type(task_backends["default"]) is LeaseQueueBackend
        assert type(sample.noop.get_backend()) is LeaseQueueBackend

    def test_the_decorator(self):
        assert isinstance(sample.noop, LeaseQueueBackend.task_class)
        assert (sample.noop.name, sample.noop.priority) == ("noop", 0)
        assert (sample.doubles_later.priority, sample.doubles_later.queue_name) == (7, "other")
        assert sample.noop.module_path == "tests.backend.sample.noop"

    def test_using_makes_another_task(self):
        other = sample.noop.using(priority=5)
        assert other is not sample.noop
        assert (other.priority, sample.noop.priority) == (5, 0)
        assert other.func is sample.noop.func
        later = timezone.now() + timedelta(hours=1)
        chained = other.using(queue_name="q").using(run_after=later)
        assert (chained.priority, chained.queue_name, chained.run_after) == (5, "q", later)

    def test_using_refuses_what_it_does_not_know(self):
        with pytest.raises(TypeError):
            sample.noop.using(nonsense=1)
        with pytest.raises(ImproperlyConfigured):
            sample.noop.using(backend="unknown")

    @override_settings(TASKS={"default": {**default, "BACKEND": "nowhere.Backend"}})
    def test_a_backend_that_is_nowhere(self):
        with pytest.raises(ImproperlyConfigured, match="nowhere"):
            sample.noop.using(priority=3)

    def test_priorities(self):
        for priority in (-101, 101, 3.1):
            with pytest.raises(InvalidTask):
                sample.noop.using(priority=priority)
        sample.noop.using(priority=100).enqueue()
        sample.noop.using(priority=-100.0).enqueue()
        assert sorted(Job.objects.values_list("priority", flat=True)) == [-100, 100]

    @override_settings(TASKS={"default": {**default, "QUEUES": ["default", "other"]}})
    def test_queues(self):
        sample.noop.using(queue_name="other").enqueue()
        with pytest.raises(InvalidTask, match="nowhere"):
            sample.noop.using(queue_name="nowhere")

    def test_a_naive_time(self):
        with pytest.raises(InvalidTask):
            sample.noop.using(run_after=datetime(2042, 1, 1))  # noqa: DTZ001

    def test_functions_that_are_no_tasks(self):
        for function in (any, lambda: None, TestCase, self.test_queues):
            with pytest.raises(InvalidTask):
                task(function)

    def test_a_context_needs_its_parameter(self):
        with pytest.raises(InvalidTask):
            task(takes_context=True)(sample.double.func)

    def test_called_directly(self):
        assert sample.double.call(3) == 6
        assert sample.doubles_later.call(3) == 6
        assert async_to_sync(sample.double.acall)(3) == 6
        assert async_to_sync(sample.doubles_later.acall)(3) == 6
        assert Job.objects.count() == 0

    def test_arguments_that_are_no_json(self):
        for argument in (datetime(2042, 1, 1, tzinfo=timezone.get_default_timezone()), {1}, self):
            with pytest.raises(TypeError):
                sample.noop.enqueue(argument)
        for argument in (float("nan"), b"\xff", {"deep": {1: 2}}):
            with pytest.raises(ValueError):
                sample.noop.enqueue(argument)
        assert Job.objects.count() == 0

    def test_arguments_that_do_not_fit(self):
        with pytest.raises(ValueError, match="missing a required argument"):
            sample.double.enqueue()
        with pytest.raises(ValueError, match="too many positional"):
            sample.double.enqueue(1, 2)
        assert Job.objects.count() == 0

    def test_arguments_are_normalised(self):
        result = sample.noop.enqueue((1, range(2)), b"text", name={"a": (1,)})
        assert (result.args, result.kwargs) == ([[1, [0, 1]], "text"], {"name": {"a": [1]}})
        found = sample.noop.get_result(result.id)
        assert (found.args, found.kwargs) == (result.args, result.kwargs)

    def test_results_by_id(self):
        result = sample.noop.enqueue(1, two=3)
        found = sample.noop.get_result(result.id)
        assert (found.id, found.status) == (result.id, TaskResultStatus.READY)
        assert found.task == result.task == sample.noop
        again = async_to_sync(sample.noop.aget_result)(result.id)
        assert again.id == result.id

    def test_results_of_another_task(self):
        result = sample.noop.enqueue()
        with pytest.raises(TaskResultMismatch):
            sample.double.get_result(result.id)
        with pytest.raises(TaskResultMismatch):
            async_to_sync(sample.double.aget_result)(result.id)

    def test_results_that_are_nowhere(self):
        ids = [
            "1",
            "0",
            "-1",
            "²",
            "x" * 100,
            "\0",
            "",
            "99999999999999999999999",
            "1.0",
            " 1",
            "01",
        ]
        for result_id in ids:
            with pytest.raises(TaskResultDoesNotExist):
                sample.noop.get_result(result_id)
        with pytest.raises(TaskResultDoesNotExist):
            async_to_sync(sample.noop.aget_result)("123")


class BackendTests(TestCase):
    """The backend: a task's life, seen through its result."""

    def test_what_it_supports(self):
        backend = task_backends["default"]
        assert backend.supports_defer
        assert backend.supports_async_task
        assert backend.supports_get_result
        assert backend.supports_priority

    def test_enqueued(self):
        for enqueue in (sample.noop.enqueue, async_to_sync(sample.noop.aenqueue)):
            result = enqueue(1, two=3)
            assert result.status == TaskResultStatus.READY
            assert not result.is_finished
            assert result.enqueued_at is not None
            assert (result.started_at, result.finished_at) == (None, None)
            assert result.last_attempted_at is None
            assert (result.attempts, result.errors, result.worker_ids) == (0, [], [])
            assert (result.args, result.kwargs) == ([1], {"two": 3})
            assert result.backend == "default"
            with pytest.raises(ValueError, match="not finished"):
                _ = result.return_value

    def test_successful(self):
        result = sample.double.enqueue(21)
        run_jobs()
        assert result.status == TaskResultStatus.READY  # as it was, until it is refreshed
        result.refresh()
        assert result.status == TaskResultStatus.SUCCESSFUL
        assert result.is_finished
        assert (result.return_value, result.attempts, result.errors) == (42, 1, [])
        times = [result.enqueued_at, result.started_at, result.finished_at]
        assert times == sorted(times)
        assert result.last_attempted_at == result.started_at

    def test_refreshed_from_a_coroutine(self):
        result = sample.double.enqueue(1)
        run_jobs()
        async_to_sync(result.arefresh)()
        assert result.return_value == 2

    def test_a_coroutine(self):
        result = sample.doubles_later.enqueue(4)
        run_jobs()
        result.refresh()
        assert (result.return_value, result.task.queue_name) == (8, "other")

    def test_failed(self):
        result = sample.fails.enqueue()
        run_jobs()
        result.refresh()
        assert result.status == TaskResultStatus.FAILED
        assert result.is_finished
        assert result.finished_at is not None
        with pytest.raises(ValueError, match="failed"):
            _ = result.return_value
        (error,) = result.errors
        assert error.exception_class is ValueError
        assert error.exception_class_path == "builtins.ValueError"
        assert "in fails" in error.traceback
        assert "Traceback (most recent call last)" in error.traceback
        assert "secret" not in error.traceback  # a message may hold anything

    def test_an_exception_of_a_library(self):
        result = sample.fails_in_the_orm.enqueue()
        run_jobs()
        result.refresh()
        assert result.errors[0].exception_class is FieldError

    def test_a_return_value_that_is_no_json(self):
        result = sample.returns_an_object.enqueue()
        run_jobs()
        result.refresh()
        assert result.status == TaskResultStatus.FAILED

    def test_an_exit(self):
        result = sample.exits.enqueue()
        run_jobs()
        result.refresh()
        assert result.status == TaskResultStatus.FAILED
        assert result.errors[0].exception_class is SystemExit

    def test_attempts(self):
        result = sample.fails_twice.enqueue()
        run_jobs(limit=1)
        result.refresh()
        assert (result.status, result.attempts) == (TaskResultStatus.READY, 1)
        first = result.started_at
        run_jobs()
        result.refresh()
        assert (result.status, result.return_value) == (TaskResultStatus.SUCCESSFUL, "at last")
        assert (result.attempts, len(result.errors)) == (3, 2)
        assert result.worker_ids == ["run_jobs"] * 3
        assert result.started_at == first
        assert result.last_attempted_at > first

    def test_its_context(self):
        sample.seen.clear()
        result = sample.tell_attempt.enqueue(note="hello")
        run_jobs()
        result.refresh()
        assert result.return_value == [1, result.id, "hello"]
        (context,) = sample.seen
        assert context.task_result.status == TaskResultStatus.RUNNING
        assert context.task_result.task.func is sample.tell_attempt.func
        assert context.job.job_id == int(result.id)

    def test_deferred(self):
        later = timezone.now() + timedelta(hours=1)
        result = sample.noop.using(run_after=later).enqueue()
        assert run_jobs() == []
        result.refresh()
        assert result.status == TaskResultStatus.READY
        assert sample.noop.get_result(result.id).task.run_after == later

    def test_checked_again_when_enqueued(self):
        other = sample.noop.using(queue_name="gone")
        with override_settings(TASKS={"default": {**default, "QUEUES": ["default"]}}):
            with pytest.raises(InvalidTask):
                other.enqueue()
            with pytest.raises(InvalidTask):
                async_to_sync(other.aenqueue)()
            with pytest.raises(InvalidTask):
                task_backends["default"].enqueue_many([(sample.noop, (), {}), (other, (), {})])
        assert Job.objects.count() == 0

    def test_many(self):
        calls = [(sample.double, (n,), {}) for n in range(5)]
        results = task_backends["default"].enqueue_many(calls)
        assert [result.args for result in results] == [[n] for n in range(5)]
        run_jobs()
        for n, result in enumerate(results):
            result.refresh()
            assert result.return_value == 2 * n

    def test_the_log(self):
        name = task.__module__.partition(".base")[0]  # Django's, or the backport's
        with self.assertLogs(name, level=logging.DEBUG) as logs:
            result = sample.fails.enqueue()
            run_jobs()
        levels = [record.levelname for record in logs.records]
        assert levels == ["DEBUG", "INFO", "ERROR"]
        assert all(str(result.id) in line for line in logs.output)
        assert logs.records[-1].exc_info[0] is ValueError  # sent while the exception is handled

    def test_signals_come_from_the_class(self):
        senders = []

        def note(sender, **kwargs):
            senders.append(sender)

        task_enqueued.connect(note)
        try:
            sample.noop.enqueue()
        finally:
            task_enqueued.disconnect(note)
        assert senders == [LeaseQueueBackend]


class CustomBackend(LeaseQueueBackend):
    """A project's own."""

    supports_async_task = False


class CustomBackendTests(TestCase):
    """A backend made of this one."""

    @override_settings(
        TASKS={
            "default": {**default, "OPTIONS": {"DATABASE": "default"}},
            "own": {**default, "BACKEND": f"{__name__}.CustomBackend"},
        }
    )
    def test_beside_the_default_one(self):
        result = sample.noop.using(backend="own").enqueue()
        assert result.backend == "own"
        run_jobs()
        found = task_backends["own"].get_result(result.id)
        assert (found.backend, found.status) == ("own", TaskResultStatus.SUCCESSFUL)
        with pytest.raises(InvalidTask):
            sample.doubles_later.using(backend="own")
        assert task_backends["default"].options == {"DATABASE": "default"}


class TransactionTests(TransactionTestCase):
    """A task commits with the rows around it, or not at all."""

    def test_rolled_back(self):
        with pytest.raises(RuntimeError), transaction.atomic():  # noqa: PT012
            result = sample.noop.enqueue()
            raise RuntimeError
        with pytest.raises(TaskResultDoesNotExist):
            sample.noop.get_result(result.id)

    def test_committed(self):
        with transaction.atomic():
            result = sample.noop.enqueue()
        run_jobs()
        assert sample.noop.get_result(result.id).status == TaskResultStatus.SUCCESSFUL

    async def test_in_a_coroutine(self):
        result = await sample.double.aenqueue(2)
        await sync_to_async(run_jobs)()
        await result.arefresh()
        assert result.return_value == 4


def test_a_task_can_be_varied_as_a_dataclass():
    assert dataclasses.replace(sample.noop, max_attempts=7).max_attempts == 7
