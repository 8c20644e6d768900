"""Connects the receivers, at start-up as a project does."""

from __future__ import annotations

import json
import os
from typing import Any

from django.apps import AppConfig


class ListenersConfig(AppConfig):
    name = "tests.process.listeners"
    label = "listeners"

    def ready(self) -> None:
        from django_leasequeue import signals

        for name in signals.__all__:
            if name != "QueueSignal":
                signal = getattr(signals, name)
                signal.connect(note, weak=False, dispatch_uid="listeners")
        for name in os.environ.get("SIGNALS_THAT_RAISE", "").split():
            getattr(signals, name).connect(fail, weak=False, dispatch_uid="listeners_fail")


def note(*, signal: Any, context: Any = None, error: Any = None, **arguments: Any) -> None:
    """Write a line: the signal, the process, and the job as the database has it now."""
    from django_leasequeue.models import Job

    entry = {"signal": signal.name, "pid": os.getpid()}
    if context is not None:
        entry |= {"job_id": context.job_id, "attempt": context.attempt}
        entry["stored"] = Job.objects.get(pk=context.job_id).status
    if error is not None:
        entry |= {"error": type(error).__name__, "alive": error.__traceback__ is not None}
    if "job" in arguments:
        entry["job_id"] = arguments["job"].pk
    known = ("outcome", "status", "worker", "code", "created")
    entry |= {name: arguments[name] for name in known if name in arguments}
    line = json.dumps(entry).encode() + b"\n"
    descriptor = os.open(os.environ["SIGNALS_FILE"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(descriptor, line)
    os.close(descriptor)


def fail(**arguments: Any) -> None:
    """Write to the database in a way that fails, and let it through."""
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute("SELECT no_such_column FROM leasequeue_job")
