"""Foreign keys to the queue's jobs: their constraints lock a job's row, and hold up its renewal."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.apps import apps
from django.db.models import ForeignKey

from django_leasequeue.doctor.case import Case
from django_leasequeue.doctor.findings import Finding, Kind
from django_leasequeue.models import Job

__all__ = ["foreign_keys", "model_fields"]

_WHY = (
    "A handler's transaction that writes such a row locks the job, so that its lease is not "
    "renewed and it cannot be settled until the commit."
)
MODEL = Kind(
    "leasequeue.W005",
    "foreign-keys",
    f"{_WHY} Give the field db_constraint=False, or keep the job's id in a BigIntegerField.",
)
CONSTRAINT = Kind(
    "leasequeue.W006",
    "foreign-keys",
    f"{_WHY} Drop the constraint and keep the column.",
)


def model_fields() -> Iterator[Finding]:
    """A model has a foreign key to Job with a constraint in the database."""
    for model in apps.get_models(include_auto_created=True):
        for one in model._meta.local_fields:
            if isinstance(one, ForeignKey) and one.related_model is Job and _constrained(one):
                label = f"{model._meta.label}.{one.name}"
                yield MODEL.found(f"{label} is a foreign key to Job with a database constraint.")


def _constrained(one: ForeignKey[Any, Any]) -> bool:
    return bool(vars(one)["db_constraint"])


def foreign_keys(case: Case) -> Iterator[Finding]:
    """The database has a foreign key constraint to the table of jobs."""
    for found in case.server.foreign_keys(case.connection, Job._meta.db_table):
        yield CONSTRAINT.found(
            f"{found.table} has the foreign key constraint {found.name} to {Job._meta.db_table}."
        )
