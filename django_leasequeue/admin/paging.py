"""Pagination that never counts or sorts a whole table: it looks for so many rows, and says so."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from django.contrib.admin.views.main import ChangeList
from django.core.paginator import Page, Paginator
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.functional import cached_property

__all__ = ["COUNT_LIMIT", "CappedChangeList", "CappedPaginator", "capped_count"]

COUNT_LIMIT = 10_000


class AtLeast(int):
    """A number that is shown as "10000+"."""

    def __str__(self) -> str:
        # To be shown without localizing: Django would group these characters by threes.
        return f"{int.__str__(self)}+"


def capped_count(rows: QuerySet[Any]) -> int:
    """Return the number of rows, or `COUNT_LIMIT` as a number that shows it is not all."""
    count = rows.order_by().values("pk")[: COUNT_LIMIT + 1].count()
    return AtLeast(COUNT_LIMIT) if count > COUNT_LIMIT else count


class CappedPaginator(Paginator):  # type: ignore[type-arg]  # no [] at run time
    """Pages as far as the count goes; older rows are reached by a filter or a search.

    Rows ordered by id are found as ids, in no order, through whichever index finds them. A server
    that is to sort as well walks the primary key instead, past all that a filter leaves out.
    """

    object_list: QuerySet[Any]

    @cached_property
    def count(self) -> int:
        if not self._by_id:
            return capped_count(self.object_list)
        return AtLeast(COUNT_LIMIT) if len(self._ids) > COUNT_LIMIT else len(self._ids)

    def page(self, number: int | str) -> Page[Any]:
        found = super().page(number)
        first = (found.number - 1) * self.per_page
        found.object_list = self.rows(first, min(first + self.per_page, self.count))
        return found

    def rows(self, first: int, end: int) -> QuerySet[Any]:
        """Return the rows from one place to another, in their order."""
        if not self._by_id or len(self._ids) > COUNT_LIMIT:
            return self.object_list[first:end]
        shown = sorted(self._ids, reverse=self._by_id.startswith("-"))[first:end]
        return self.object_list.filter(pk__in=shown)

    @cached_property
    def _by_id(self) -> str:
        """The order, if it is by id and the rows are filtered, else ""."""
        query = self.object_list.query
        # The admin adds an order of its own to the one that is asked for.
        order = [str(name) for name in query.order_by]
        by_id = order and {name.removeprefix("-") for name in order} <= {"id", "pk"}
        return order[0] if by_id and query.where else ""

    @cached_property
    def _ids(self) -> Sequence[Any]:
        return list(self.object_list.order_by().values_list("pk", flat=True)[: COUNT_LIMIT + 1])


class CappedChangeList(ChangeList):
    """A list that fits on one page comes from the `CappedPaginator` too."""

    def get_results(self, request: HttpRequest) -> None:
        super().get_results(request)
        if not self.multi_page or (self.show_all and self.can_show_all):
            paginator = cast("CappedPaginator", self.paginator)
            self.result_list = paginator.rows(0, self.result_count)
