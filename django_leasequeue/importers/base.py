"""What an importer is: it goes through another app's rows and says of each what became of it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from django.apps import apps
from django.core.exceptions import ImproperlyConfigured
from django.db import router

from django_leasequeue.declaration import Declaration
from django_leasequeue.registry import registry

__all__ = ["Importer", "Line", "State", "Unmappable", "Wish", "checked_map"]

#: "present" is what an earlier import made; "left" is what nothing here can stand for.
State = Literal["imported", "present", "left"]


class Unmappable(Exception):
    """A row that has no counterpart; its text says why, and what to do instead. No values."""


@dataclass(frozen=True, slots=True)
class Wish:
    """What the operator asked for. `job_types` maps the source's function names to ours."""

    database: str
    job_types: Mapping[str, str] = field(default_factory=dict)
    source_database: str | None = None
    dry_run: bool = False
    enable: bool = False
    mark: bool = False

    def declared(self, function: str) -> Declaration:
        """Return the job type for a function of the source. Raises Unmappable."""
        name = self.job_types.get(function, function)
        try:
            found = registry.find(name)
        except Exception as error:  # noqa: BLE001  (a broken module holds up no other row)
            raise Unmappable(f"the module of {name} raises {type(error).__name__}") from None
        if found is None:
            raise Unmappable(f"no job type for {function}: --map {function}=JOB_TYPE")
        return found


@dataclass(frozen=True, slots=True)
class Line:
    """What became of one row: `source` names it, `target` what there is for it now."""

    source: str
    state: State
    target: str = ""
    #: Why it was left, or what of it has no counterpart.
    notes: tuple[str, ...] = ()


class Importer(ABC):
    """One source. Its app is installed in the project, and stays as it is."""

    #: As on the command line.
    name: ClassVar[str]
    app_label: ClassVar[str]
    model_name: ClassVar[str]
    #: Whether it can mark the source's rows as taken over.
    marks: ClassVar[bool] = False

    def __init__(self, wish: Wish) -> None:
        self.wish = wish
        try:
            self.model: Any = apps.get_model(self.app_label, self.model_name)
        except LookupError:
            raise ImproperlyConfigured(
                f"No app in INSTALLED_APPS has the label {self.app_label!r}: keep it there until "
                "all is imported."
            ) from None
        self.source = wish.source_database or router.db_for_write(self.model)

    def run(self) -> Iterator[Line]:
        """Import row by row, each by itself, and yield what became of it."""
        for row in self.rows():
            try:
                yield self.take(row)
            except Unmappable as reason:
                yield Line(self.label(row), "left", notes=(str(reason),))

    @abstractmethod
    def count(self) -> int:
        """Return how many rows there are to go through."""

    @abstractmethod
    def rows(self) -> Iterator[Any]:
        """Yield the source's rows, with bounded memory."""

    @abstractmethod
    def label(self, row: Any) -> str:
        """Return what a person calls the row; none of its values."""

    @abstractmethod
    def take(self, row: Any) -> Line:
        """Import one row, or tell what would be imported. Raises Unmappable."""


def checked_map(pairs: list[str]) -> dict[str, str]:
    """Return `OLD=NEW` texts as a mapping.

    Raises ImproperlyConfigured for what is no pair, twice there, or names no job type.
    """
    found: dict[str, str] = {}
    for pair in pairs:
        old, _, new = pair.partition("=")
        if not old or not new or old in found:
            raise ImproperlyConfigured(f"--map {pair}: give OLD=JOB_TYPE, each OLD once.")
        if registry.find(new) is None:
            raise ImproperlyConfigured(f"--map {pair}: no job type is named {new!r} here.")
        found[old] = new
    return found
