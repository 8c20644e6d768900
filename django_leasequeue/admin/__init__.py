"""Jobs, queues and schedules in Django's admin: see, find, requeue, cancel, pause, plan.

Nothing else in the package imports this one, so a project without `django.contrib.admin` loads.
The classes serve a custom AdminSite as well: `site.register(Job, JobAdmin)`.
"""

from __future__ import annotations

from django_leasequeue.admin.bulk_runs import BulkRunAdmin
from django_leasequeue.admin.dead_groups import DeadGroupAdmin
from django_leasequeue.admin.jobs import JobAdmin
from django_leasequeue.admin.queues import QueueAdmin
from django_leasequeue.admin.schedules import ScheduleAdmin
from django_leasequeue.admin.workers import WorkerAdmin

__all__ = [
    "BulkRunAdmin",
    "DeadGroupAdmin",
    "JobAdmin",
    "QueueAdmin",
    "ScheduleAdmin",
    "WorkerAdmin",
]
