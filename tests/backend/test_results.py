"""Results of jobs whose task is gone, dead, cancelled, running, or no task at all."""

from __future__ import annotations

import pytest
from django.test import TestCase, override_settings

from django_leasequeue import KeyTaken, cancel, enqueue, job
from django_leasequeue.backend.compat import (
    TaskResultDoesNotExist,
    TaskResultStatus,
    task_backends,
)
from django_leasequeue.models import Job
from django_leasequeue.registry import registry
from django_leasequeue.testing import expire_lease, run_jobs
from tests.backend import sample
from tests.core.arrange import claim_one

default = {"BACKEND": "django_leasequeue.backend.LeaseQueueBackend", "QUEUES": []}


def found(result):
    return task_backends["default"].get_result(result.id)


class ResultTests(TestCase):
    def test_a_task_that_was_removed(self):
        result = sample.noop.enqueue(1)
        Job.objects.update(job_type="tests.backend.sample.removed")
        old = found(result)
        assert (old.task.name, old.task.module_path) == ("removed", "tests.backend.sample.removed")
        assert old.args == [1]
        with pytest.raises(LookupError):
            old.task.call()
        run_jobs()
        after = found(result)
        assert after.status == TaskResultStatus.FAILED  # unknown here: dead at once
        assert [error.exception_class.__name__ for error in after.errors] == ["UnknownJobType"]

    def test_a_module_that_was_removed_or_is_broken(self):
        result = sample.noop.enqueue()
        for path in ("tests.backend.nowhere.noop", "nowhere", "os.system", "..x", "a b.c"):
            Job.objects.update(job_type=path)
            assert found(result).status == TaskResultStatus.READY

    def test_a_queue_that_was_removed(self):
        result = sample.doubles_later.enqueue(1)
        with override_settings(TASKS={"default": {**default, "QUEUES": ["default"]}}):
            assert found(result).task.queue_name == "other"
            run_jobs()
            result.refresh()
        assert result.return_value == 2

    def test_cancelled(self):
        result = sample.noop.enqueue()
        cancel(int(result.id))
        assert found(result).status == TaskResultStatus.FAILED
        assert found(result).errors == []

    def test_running(self):
        result = sample.noop.enqueue()
        claim_one(self._connection())
        running = found(result)
        assert running.status == TaskResultStatus.RUNNING
        assert running.attempts == len(running.worker_ids) == 1
        assert running.last_attempted_at == running.started_at is not None

    def test_a_worker_that_died(self):
        result = sample.noop.enqueue()
        claim_one(self._connection())
        expire_lease(int(result.id))
        run_jobs()
        after = found(result)
        assert (after.status, after.attempts) == (TaskResultStatus.SUCCESSFUL, 2)
        assert [error.exception_class.__name__ for error in after.errors] == ["JobExpired"]

    def test_a_job_that_is_no_task(self):
        other = enqueue("report.generate", {"tenant_id": "acme"})
        with pytest.raises(TaskResultDoesNotExist):
            task_backends["default"].get_result(str(other.id))

    def test_a_job_of_another_type_with_the_payload_of_a_task(self):
        @job("other.bridge")
        def bridge(args, kwargs):
            return None

        self.addCleanup(registry.remove, "other.bridge")
        other = bridge.enqueue([1], {})
        with pytest.raises(TaskResultDoesNotExist):
            task_backends["default"].get_result(str(other.pk))

    def test_what_another_program_wrote_into_the_payload(self):
        result = sample.noop.enqueue(1)
        for odd in ("garbage", 5, [1], {}):
            Job.objects.update(payload={"args": [1], "kwargs": {}, "run_after": odd})
            assert found(result).task.run_after is None
        Job.objects.update(payload={"args": [1], "kwargs": {}, "backend": [1]})
        with pytest.raises(TaskResultDoesNotExist):
            found(result)

    def test_a_key_that_a_job_which_is_no_task_has(self):
        other = enqueue("other.type", key="shared")
        with pytest.raises(KeyTaken, match="no task") as refused:
            sample.noop.using(key="shared").enqueue()
        assert refused.value.job_id == other.pk

    def test_a_key_that_is_taken_gives_the_job_that_has_it(self):
        first, second = sample.once_for.enqueue(1), sample.once_for.enqueue(value=1)
        assert (first.id, second.args) == (second.id, [1])
        assert sample.once_for.enqueue(2).id != first.id
        run_jobs()
        assert sample.once_for.enqueue(1).id != first.id

    def _connection(self):
        from django.db import connection

        return connection
