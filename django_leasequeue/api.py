"""What a project writes: `@job` and the job types it makes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from inspect import isclass
from typing import Any, Unpack, overload

from django.apps import apps
from django.core.exceptions import AppRegistryNotReady, ImproperlyConfigured

from django_leasequeue.core.enqueue import aenqueue, enqueue, enqueue_many
from django_leasequeue.core.request import OptionsUsing
from django_leasequeue.declaration import Declaration, Policy, policy_for
from django_leasequeue.models import Job
from django_leasequeue.registry import registry

__all__ = ["JobType", "job"]


@dataclass(frozen=True, eq=False)
class JobType(Declaration):
    """A declared handler. Calling it calls the plain function; `enqueue` makes a job of it.

    Jobs know it by its name alone, which outlives refactoring; seed S2 names the class.
    """

    options: OptionsUsing = field(default_factory=OptionsUsing, repr=False)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.handler(*args, **kwargs)

    def __mro_entries__(self, bases: tuple[Any, ...]) -> tuple[type, ...]:
        # `class Other(Declared)`: the base is the class, not this.
        if not isclass(self.handler):
            raise TypeError(f"{self.name} is a job type made of a function: it is no base class")
        return (self.handler,)

    def using(self, **options: Unpack[OptionsUsing]) -> JobType:
        """Return this job type with options for its next enqueues.

        Takes every option of `enqueue` (`key`, `queue`, `delay`, `run_after`, `priority`,
        `max_attempts`, `using`, …). Raises nothing: they are checked when a job is enqueued.
        """
        merged: OptionsUsing = {**self.options, **options}
        return replace(self, options=merged)

    def enqueue(self, *args: Any, **payload: Any) -> Job:
        """Enqueue one job; arguments and `payload` are bound to the handler's parameter names.

        Returns the job, whose `created` is False when its key was taken. Raises TypeError when
        the arguments do not fit the handler and EnqueueError for values that cannot be queued;
        in both cases nothing was written.
        """
        return enqueue(self, self.payload_from(args, payload), **self.options)

    async def aenqueue(self, *args: Any, **payload: Any) -> Job:
        """Do what `enqueue` does, from a coroutine."""
        return await aenqueue(self, self.payload_from(args, payload), **self.options)

    def enqueue_many(self, payloads: Iterable[Any]) -> list[Job]:
        """Enqueue one job for each of `payloads`, in order, in as few statements as there can be.

        A payload is a dictionary, or the model that the handler takes as its whole payload. All
        are written in one transaction or none is. Raises as `enqueue` does.
        """
        options = self.options.copy()
        using = options.pop("using", None)
        jobs = [(self, self._payload(payload), options) for payload in payloads]
        return enqueue_many(jobs, using=using)

    def _payload(self, given: Any) -> dict[str, Any]:
        if isinstance(given, dict):
            return self.payload_from((), given)
        return self.payload_from((given,), {})


def _default_name(handler: Callable[..., Any]) -> str:
    try:
        config = apps.get_containing_app_config(handler.__module__)
    except AppRegistryNotReady:
        raise ImproperlyConfigured(
            f"@job on {handler.__module__}.{handler.__qualname__}: it is imported before the apps "
            "are loaded, so it needs an explicit name; or move it to the app's jobs.py."
        ) from None
    if handler.__module__ == "__main__":
        raise ImproperlyConfigured(
            f"@job on {handler.__qualname__} in the main script: no worker imports that. Move it "
            "to an app's jobs.py, or give it an explicit name for workers of this very process."
        )
    label = config.label if config else handler.__module__
    return f"{label}.{handler.__name__}"


@overload
def job(name: Callable[..., Any], /) -> JobType: ...
@overload
def job(
    name: str | None = None, /, **policy: Unpack[Policy]
) -> Callable[[Callable[..., Any]], JobType]: ...
def job(name: Any = None, /, **policy: Any) -> Any:
    """Declare a handler: `@job`, `@job("report.generate")` or `@job("…", queue="reports", …)`.

    A handler is a function, a coroutine function, or a class with `handle(self, **payload)`, or
    `handle(self, context, **payload)`, and perhaps `failed(self, context, error)`. Without a
    `name` the job type is called "<app_label>.<function>". The decorated name is the JobType;
    calling it calls the plain function, or makes an object of the class. Raises
    ImproperlyConfigured for a declaration that could never run.

    Options, each described in docs/handlers.md: `queue`, `priority` (-100 to 100, higher first);
    `max_attempts`, `max_crashes`, `backoff`, `permanent` (exception classes that end the job);
    `timeout` and `lease` (seconds); `atomic`; `takes_context`; `failed` (the hook);
    `sensitive` (names of parameters whose values are masked); `key`, `key_until`; `version`,
    `upcast`; `every` (seconds or a timedelta) or `cron`, with `timezone` and `catch_up`.
    """
    if callable(name):
        return job()(name)

    def declare(handler: Callable[..., Any]) -> JobType:
        try:
            options = policy_for(handler, policy)
            job_type = JobType(handler=handler, name=name or _default_name(handler), **options)
        except TypeError as error:
            raise ImproperlyConfigured(
                f"@job on {handler.__module__}.{handler.__qualname__}: {error}"
            ) from None
        registry.add(job_type)
        return job_type

    return declare
