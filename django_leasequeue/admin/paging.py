"""Pagination that never counts a whole table: the count ends at a limit, and says so."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.paginator import Paginator
from django.db.models import QuerySet
from django.utils.functional import cached_property

__all__ = ["COUNT_LIMIT", "CappedPaginator", "capped_count"]

COUNT_LIMIT = 10_000


class AtLeast(int):
    """A number that is shown as "10000+"."""

    def __str__(self) -> str:
        # Django groups the characters of this text by threes, whatever they are.
        return int.__str__(self) + ("" if settings.USE_THOUSAND_SEPARATOR else "+")


def capped_count(rows: QuerySet[Any]) -> int:
    """Return the number of rows, or `COUNT_LIMIT` as a number that shows it is not all."""
    count = rows.order_by().values("pk")[: COUNT_LIMIT + 1].count()
    return AtLeast(COUNT_LIMIT) if count > COUNT_LIMIT else count


class CappedPaginator(Paginator):  # type: ignore[type-arg]  # no [] at run time
    """Pages as far as the count goes; older rows are reached by a filter or a search."""

    object_list: QuerySet[Any]

    @cached_property
    def count(self) -> int:
        return capped_count(self.object_list)
