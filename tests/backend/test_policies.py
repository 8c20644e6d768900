"""Policies of tasks, on every version of the framework."""

from __future__ import annotations

import pickle

import django
import pytest
from django.core.exceptions import ImproperlyConfigured
from django.test import TestCase

from django_leasequeue import Fixed
from django_leasequeue.backend import policy
from django_leasequeue.backend.compat import task
from django_leasequeue.models import Job
from django_leasequeue.registry import registry
from django_leasequeue.testing import run_jobs
from tests.backend import sample


def module_level(function):
    """Let a function of a test pass for one of its module."""
    function.__qualname__ = function.__name__
    return function


@pytest.fixture(autouse=True)
def _forget():
    before = set(registry)
    yield
    for kind in set(registry) - before:
        registry.remove(kind.name)


class PolicyTests(TestCase):
    def test_on_the_row(self):
        sample.limited.enqueue()
        job = Job.objects.get()
        assert (job.max_attempts, job.timeout) == (9, 1.5)

    def test_of_one_enqueue(self):
        sample.limited.using(max_attempts=2, timeout=7, key="k").enqueue()
        job = Job.objects.get()
        assert (job.max_attempts, job.timeout) == (2, 7.0)
        assert sample.limited.using(key="k").enqueue().id == str(job.id)

    def test_its_backoff(self):
        result = sample.fails_twice.enqueue()
        assert [one.outcome for one in run_jobs()] == ["failed", "failed", "completed"]
        assert result.id

    def test_permanent_errors(self):
        result = sample.permanently_fails.enqueue()
        assert [one.outcome for one in run_jobs()] == ["rejected"]
        result.refresh()
        assert result.status == "FAILED"

    def test_its_last_hook(self):
        sample.buried.clear()
        sample.permanently_fails.enqueue()
        run_jobs()
        ((args, error),) = sample.buried
        assert args == []
        assert "KeyError" in str(error)

    def test_atomic(self):
        result = sample.atomically.enqueue()
        run_jobs()
        result.refresh()
        assert (result.status, result.return_value) == ("SUCCESSFUL", 3)


def test_options_that_are_none():
    with pytest.raises(TypeError, match="nonsense"):
        policy(nonsense=1)
    with pytest.raises(TypeError, match="queue"):
        policy(queue="q")  # @task says it


def test_above_the_task():
    with pytest.raises(TypeError, match="under @task"):
        policy(max_attempts=3)(sample.noop)


@pytest.mark.parametrize(
    "options", [{"max_attempts": 0}, {"timeout": -1}, {"backoff": 5}, {"permanent": ["x"]}]
)
def test_values_that_are_none(options):
    @module_level
    def function():
        pass

    with pytest.raises(ImproperlyConfigured):
        task(policy(**options)(function))


def test_an_atomic_coroutine():
    @module_level
    async def function():
        pass

    with pytest.raises(ImproperlyConfigured, match="plain functions"):
        task(policy(atomic=True)(function))


@pytest.mark.skipif(
    django.VERSION[:2] == (6, 0), reason="Django 6.0 takes no other options in @task"
)
def test_in_the_decorator():
    @module_level
    def function():
        pass

    made = task(max_attempts=4, backoff=Fixed(1), timeout=2)(function)
    assert (made.max_attempts, made.timeout) == (4, 2)
    assert registry.get(made.module_path).max_attempts == 4


@pytest.mark.skipif(django.VERSION < (6, 1), reason="tasks can be pickled since Django 6.1")
def test_pickled():
    copy = pickle.loads(pickle.dumps(sample.limited.using(priority=3)))
    assert copy == sample.limited.using(priority=3)
