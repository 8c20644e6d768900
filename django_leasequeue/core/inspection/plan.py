"""A plan: how a server means to run one of the queue's statements."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["Plan"]


class Plan(NamedTuple):
    """What a server says about the statement whose comment is `tag`."""

    tag: str
    indexes: frozenset[str]
    #: Sorts, or fills a temporary table.
    sorts: bool
    #: Reads all of a table, or all of an index.
    scans: bool
