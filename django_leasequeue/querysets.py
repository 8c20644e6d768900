"""Read-only views of the jobs, in the words an operator uses."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db.models import Q, QuerySet

from django_leasequeue.core.clock import UtcNow
from django_leasequeue.statuses import Status

if TYPE_CHECKING:
    from django_leasequeue.models import Job  # noqa: F401  (the type parameter)

__all__ = ["JobQuerySet"]


class JobQuerySet(QuerySet["Job"]):
    """Views by status; times are compared with the database's clock."""

    def due(self) -> JobQuerySet:
        """Ready jobs that a worker may claim now."""
        return self.filter(status=Status.READY, available_at__lte=UtcNow())

    def scheduled(self) -> JobQuerySet:
        """Ready jobs that were never tried and are not due yet."""
        return self.filter(status=Status.READY, available_at__gt=UtcNow(), attempts=0)

    def retrying(self) -> JobQuerySet:
        """Ready jobs that were tried and wait for their next attempt."""
        return self.filter(status=Status.READY, available_at__gt=UtcNow(), attempts__gt=0)

    def reserved(self) -> JobQuerySet:
        """Jobs that a worker holds."""
        return self.filter(status=Status.RESERVED)

    def expired(self) -> JobQuerySet:
        """Reserved jobs whose lease ran out and that wait to be recovered."""
        return self.filter(status=Status.RESERVED, lease_until__lte=UtcNow())

    def dead(self) -> JobQuerySet:
        """The dead letters."""
        return self.filter(status=Status.DEAD)

    def unfinished(self) -> JobQuerySet:
        """Jobs that are not in a final status."""
        return self.filter(
            Q(status=Status.READY) | Q(status=Status.RESERVED) | Q(status=Status.PARKED)
        )
