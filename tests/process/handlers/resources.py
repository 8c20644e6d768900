"""Handlers that use things up, leave things behind, or tell what they find."""

from __future__ import annotations

import contextvars
import decimal
import os
import zoneinfo
from pathlib import Path
from typing import Any

from django.db import connection
from django.utils import timezone, translation

from django_leasequeue import JobContext, job
from reports.models import GeneratedReport
from tests.process.gate import Gate

LONG = 3600
VARIABLE = contextvars.ContextVar("VARIABLE", default="untouched")
_kept: list[bytearray] = []


@job("res.pid")
def tell_pid() -> int:
    return os.getpid()


@job("res.leak")
def leak(mebibytes: int) -> int:
    _kept.append(bytearray(b"x") * (mebibytes << 20))
    return os.getpid()


@job("res.memory")
def memory() -> dict[str, int]:
    """Run some statements, as DEBUG would keep them, and tell what this process and control use."""
    for _ in range(2):
        GeneratedReport.objects.filter(tenant_id="x" * 5000).exists()
    forkserver = Path(f"/proc/{os.getppid()}/stat").read_text()
    control = int(forkserver.rpartition(")")[2].split()[1])
    return {
        "child": _resident(os.getpid()),
        "control": _resident(control),
        "kept": len(connection.queries_log),
    }


def _resident(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def _hook(context: JobContext, error: Exception) -> None:
    gate = Gate(context.payload["gate"])
    gate.say(f"hook-{os.getpid()}")
    gate.wait("go", timeout=LONG)
    gate.say("hook-ended")


@job("res.dies", takes_context=True, failed=_hook)
def dies(context: JobContext, gate: str) -> None:
    """Be dead at once, with a `failed` hook that waits at the gate."""
    raise ValueError


_SESSION = {
    "mysql": ("SET SESSION wait_timeout = 1234", "SELECT @@wait_timeout"),
    "postgresql": ("SET application_name = 'dirty'", "SHOW application_name"),
    "sqlite": ("PRAGMA cache_size = 1234", "PRAGMA cache_size"),
}


def _change_language() -> None:
    translation.activate("fr")
    timezone.activate(zoneinfo.ZoneInfo("Asia/Tokyo"))


def _change_variables() -> None:
    VARIABLE.set("changed")
    decimal.getcontext().prec = 5


def _change_session() -> None:
    with connection.cursor() as cursor:
        cursor.execute(_SESSION[connection.vendor][0])


def _change_and_raise() -> None:
    _change_language()
    _change_variables()
    _change_session()
    raise ValueError


def _leave_transaction() -> None:
    connection.set_autocommit(False)
    _write_row()


def _close_inside() -> None:
    connection.set_autocommit(False)
    _write_row()
    connection.close()


def _write_row() -> None:
    GeneratedReport.objects.create(
        idempotency_key=f"{os.getpid()}", tenant_id="x", report_month="2042-01", result_json={}
    )


_WAYS: dict[str, Any] = {
    "language": _change_language,
    "variables": _change_variables,
    "session": _change_session,
    "transaction": _leave_transaction,
    "closed": _close_inside,
    "raises": _change_and_raise,
}


@job("res.dirty")
def dirty(way: str) -> int:
    _WAYS[way]()
    return os.getpid()


@job("res.state")
def state() -> dict[str, Any]:
    """Tell what a handler finds at its start."""
    with connection.cursor() as cursor:
        cursor.execute(_SESSION[connection.vendor][1])
        setting = str(cursor.fetchone()[0])
    return {
        "language": translation.get_language(),
        "zone": timezone.get_current_timezone_name(),
        "variable": VARIABLE.get(),
        "precision": decimal.getcontext().prec,
        "setting": setting,
        "autocommit": connection.get_autocommit(),
        "rows": GeneratedReport.objects.count(),
    }
