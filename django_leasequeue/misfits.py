"""What is wrong with a value, told by the names of fields that the code knows, never by data."""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["Misfit", "unknown_fields"]

_MOST_PROBLEMS = 10


class Misfit(Exception):
    """The value is none of its annotation; the text names fields and what they must be."""

    def __init__(self, *problems: str) -> None:
        more = "; …" if len(problems) > _MOST_PROBLEMS else ""
        super().__init__("; ".join(problems[:_MOST_PROBLEMS]) + more)
        self.problems = problems


def unknown_fields(count: int, known: Iterable[str]) -> str:
    """Say that there are so many unknown fields, whose names may be data, and which are known."""
    are = "field is" if count == 1 else "fields are"
    return f"{count} {are} unknown; known: {', '.join(known) or 'none'}"
