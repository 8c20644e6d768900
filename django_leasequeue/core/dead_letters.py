"""What operators noted about the dead letters of one fingerprint; and those that are snoozed."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper

from django_leasequeue.core.clock import UtcNow
from django_leasequeue.models import DeadGroup

__all__ = ["annotate", "snoozed"]


def snoozed(connection: BaseDatabaseWrapper, now: datetime) -> list[str]:
    """Return the fingerprints of the groups that are snoozed at `now`."""
    groups = DeadGroup.objects.using(connection.alias).filter(snoozed_until__gt=now)
    return list(groups.order_by("fingerprint").values_list("fingerprint", flat=True))


def annotate(connection: BaseDatabaseWrapper, fingerprint: str, **values: Any) -> DeadGroup:
    """Write a group's `note` or `snoozed_until` and return its row; other columns stay."""
    groups = DeadGroup.objects.using(connection.alias)
    groups.get_or_create(fingerprint=fingerprint)
    groups.filter(fingerprint=fingerprint).update(**values, updated_at=UtcNow())
    return groups.get(fingerprint=fingerprint)
