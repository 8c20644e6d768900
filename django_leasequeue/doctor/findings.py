"""A finding: what is wrong, how bad it is, what to do, where that is explained."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

__all__ = ["Finding", "Kind", "Severity"]


class Severity(Enum):
    """How bad a finding is; notes are worth knowing and need no action."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


_SEVERITIES = {"E": Severity.ERROR, "W": Severity.WARNING, "I": Severity.NOTE}


@dataclass(frozen=True, slots=True)
class Kind:
    """What findings of one id have in common; `section` is a heading's anchor in docs/checks.md."""

    id: str
    section: str
    advice: str

    @property
    def severity(self) -> Severity:
        """How bad findings of this kind are: the letter of their id."""
        return _SEVERITIES[self.id.rpartition(".")[2][0]]

    def found(self, what: str) -> Finding:
        """Return a finding of this kind; `what` is one sentence or more."""
        return Finding(self, what)


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was found."""

    kind: Kind
    what: str

    @property
    def docs(self) -> str:
        """Where in the documentation this is explained."""
        return f"docs/checks.md#{self.kind.section}"

    @property
    def hint(self) -> str:
        """What to do, and where to read on."""
        return f"{self.kind.advice} See {self.docs}."
