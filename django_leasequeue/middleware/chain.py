"""The chain: the project's middleware, built once per process, and how its parts nest."""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any

from django.core.exceptions import ImproperlyConfigured
from django.core.signals import setting_changed
from django.utils.module_loading import import_string

from django_leasequeue.codec import decode_payload
from django_leasequeue.conf import get_conf

__all__ = ["Chain", "NewJob", "get_chain"]

_METHODS = ("on_enqueue", "around", "around_failed")


class NewJob:
    """A job that is about to be enqueued, as `on_enqueue` sees it.

    `context` is a dictionary to put JSON data into; everything else is for reading.
    """

    def __init__(self, job_type: str, queue: str, payload: str) -> None:
        self.context: dict[str, Any] = {}
        self._about = (job_type, queue)
        self._text = payload
        self._payload: Mapping[str, Any] | None = None

    def __repr__(self) -> str:
        return f"<NewJob {self.job_type} in {self.queue}>"

    @property
    def job_type(self) -> str:
        """Its job type."""
        return self._about[0]

    @property
    def queue(self) -> str:
        """The queue that it goes to."""
        return self._about[1]

    @property
    def payload(self) -> Mapping[str, Any]:
        """Its payload as the handler will get it: a copy, whose change changes nothing."""
        if self._payload is None:
            self._payload = MappingProxyType(decode_payload(self._text))
        return self._payload


class Chain:
    """Middleware in the order of the setting: the first is the outermost."""

    def __init__(self, paths: tuple[str, ...]) -> None:
        members = [_build(path) for path in paths]
        self._steps = {
            name: [getattr(member, name) for member in members if hasattr(member, name)]
            for name in _METHODS
        }

    def context_for(self, job_type: str, queue: str, payload: str) -> dict[str, Any]:
        """Return what `on_enqueue` of all puts into the context; what one raises goes through."""
        steps = self._steps["on_enqueue"]
        if not steps:
            return {}
        job = NewJob(job_type, queue, payload)
        for step in steps:
            step(job)
        return job.context

    def run(self, context: Any, call: Callable[[], Any]) -> Any:
        """Run `call`, an attempt, inside `around` of all, and return what the outermost returns."""
        return self._nested("around", context, call)

    def run_failed(self, context: Any, call: Callable[[], Any]) -> Any:
        """Run `call`, a `failed` hook, inside `around_failed` of all."""
        return self._nested("around_failed", context, call)

    def _nested(self, name: str, context: Any, call: Callable[[], Any]) -> Any:
        for step in reversed(self._steps[name]):
            call = partial(step, context, call)
        return call()


def _build(path: str) -> Any:
    """Return an instance of the class at a dotted path, checked."""
    try:
        cls = import_string(path)
        member = cls() if inspect.isclass(cls) else None
    except (ImportError, ImproperlyConfigured) as error:
        raise ImproperlyConfigured(f"LEASEQUEUE['MIDDLEWARE']: {error}") from error
    except Exception as error:
        raise ImproperlyConfigured(
            f"LEASEQUEUE['MIDDLEWARE']: {path} raised {type(error).__qualname__}."
        ) from error
    if member is None:
        raise ImproperlyConfigured(f"LEASEQUEUE['MIDDLEWARE']: {path} is no class.")
    _check_methods(path, member)
    return member


def _check_methods(path: str, member: object) -> None:
    found = [getattr(member, name) for name in _METHODS if hasattr(member, name)]
    if not found:
        raise ImproperlyConfigured(
            f"LEASEQUEUE['MIDDLEWARE']: {path} has none of the methods {', '.join(_METHODS)}."
        )
    for method in found:
        if (
            not callable(method)
            or inspect.iscoroutinefunction(method)
            or inspect.isgeneratorfunction(method)
        ):
            raise ImproperlyConfigured(
                f"LEASEQUEUE['MIDDLEWARE']: the methods of {path} must be plain functions; "
                "for a coroutine handler call() returns its result as well."
            )


_lock = threading.Lock()
_chains: list[Chain] = []


def get_chain() -> Chain:
    """Return this process's chain, building it at the first call.

    Raises ImproperlyConfigured for what is no middleware, or cannot be built.
    """
    if _chains:
        return _chains[0]
    with _lock:
        if not _chains:
            _chains.append(Chain(tuple(get_conf().MIDDLEWARE)))
        return _chains[0]


def _forget(*, setting: str, **kwargs: Any) -> None:
    if setting == "LEASEQUEUE":
        _chains.clear()


setting_changed.connect(_forget, dispatch_uid="leasequeue_middleware")
