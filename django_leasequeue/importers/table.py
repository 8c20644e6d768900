"""The list of sources."""

from __future__ import annotations

from django_leasequeue.importers.base import Importer
from django_leasequeue.importers.celery_beat import CeleryBeat
from django_leasequeue.importers.django_q2 import DjangoQ2
from django_leasequeue.importers.tasks_db import TasksDb

__all__ = ["IMPORTERS"]

IMPORTERS: dict[str, type[Importer]] = {one.name: one for one in (CeleryBeat, DjangoQ2, TasksDb)}
