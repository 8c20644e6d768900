"""Tasks for these tests; no app's `tasks.py`, so a worker imports it when a job names it."""

from __future__ import annotations

from django_leasequeue import Skip
from django_leasequeue.backend import policy
from django_leasequeue.backend.compat import task

seen = []


@task
def noop(*args, **kwargs):
    return None


@task
def double(value):
    return value * 2


@task
def pair(first, second):
    return [first, second]


@task(takes_context=True)
def tell_attempt(context, note=""):
    seen.append(context)
    return [context.attempt, context.task_result.id, note]


@task
@policy(max_attempts=1)
def fails(message="secret"):
    raise ValueError(message)


@task
@policy(max_attempts=3, backoff=lambda error, context: 0)
def fails_twice(jobs=[]):  # noqa: B006
    jobs.append(1)
    if len(jobs) % 3:
        raise KeyError("again")
    return "at last"


@task(priority=7, queue_name="other")
async def doubles_later(value):
    return value * 2


@task
@policy(max_attempts=1)
def exits():
    raise SystemExit(1)


@task
@policy(max_attempts=1)
def returns_an_object():
    return object()


@task
@policy(key=lambda value: f"v{value}", key_until="finished")
def once_for(value):
    return value


@task
@policy(max_attempts=1)
def fails_in_the_orm():
    from django.contrib.auth.models import User

    User.objects.filter(nonsense=1)


@task
def skips():
    raise Skip("not needed")


@task
@policy(max_attempts=9, timeout=1.5)
def limited():
    pass


buried = []


def bury(context, error):
    buried.append((context.payload["args"], error))


@task
@policy(permanent=(KeyError,), failed=bury)
def permanently_fails():
    raise KeyError


@task
@policy(atomic=True, timeout=1)  # SQLite cannot renew a lease meanwhile
def atomically():
    return 3
