"""Bulk runs on the command line: a line or a document each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django_leasequeue.cli.output import Output, moment
from django_leasequeue.models import BulkRun

__all__ = ["as_document", "list_runs", "reasons"]

_SHOWN = 100
_TITLES = ("run", "operation", "state", "changed", "left out", "jobs", "by", "updated", "note")
_MOST_IDS = 5


def list_runs(alias: str, out: Output, *, as_json: bool) -> None:
    """Show the newest runs, newest first."""
    rows = list(BulkRun.objects.using(alias).order_by("-pk")[:_SHOWN])
    if as_json:
        out.json({"runs": [as_document(row) for row in rows]})
        return
    out.table(_TITLES, (_row(row) for row in rows))


def as_document(row: BulkRun) -> dict[str, Any]:
    """Return a run for a program."""
    return {
        "run": row.pk,
        "operation": row.operation,
        "state": str(row.state),
        "note": row.note,
        "filter": _filter(row),
        "options": row.options,
        "changed": row.changed,
        "left_out": row.left_out,
        "by": row.by,
        "started_at": row.started_at,
        "updated_at": row.updated_at,
        "finished_at": row.finished_at,
    }


def reasons(left_out: Mapping[str, int]) -> str:
    """Return "3 key_held, 1 gone"; "" for none."""
    return ", ".join(f"{count} {reason}" for reason, count in sorted(left_out.items()))


def _row(row: BulkRun) -> tuple[object, ...]:
    wanted = ", ".join(f"{name}={value}" for name, value in _filter(row).items())
    seen = moment(row.updated_at)
    left = sum(row.left_out.values())
    return (row.pk, row.operation, row.state, row.changed, left, wanted, row.by, seen, row.note)


def _filter(row: BulkRun) -> dict[str, Any]:
    """Return which jobs a run is for, without thousands of ids."""
    found = {**row.filter, "statuses": " ".join(row.filter["statuses"])}
    if "ids" in found:
        ids = found["ids"]
        more = f" and {len(ids) - _MOST_IDS} more" if len(ids) > _MOST_IDS else ""
        found["ids"] = " ".join(map(str, ids[:_MOST_IDS])) + more
    return found
