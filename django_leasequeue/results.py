"""What a handler may return to say how it ended: JobResult (seed S2)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

__all__ = ["JobResult"]


@dataclass(frozen=True, slots=True)
class JobResult:
    """A successful end: with data that is stored as the job's result, or skipped with a reason.

    As in seed S2. A handler may as well return plain JSON data, which is `success(data)`.
    """

    data: Any = field(default_factory=dict, repr=False)
    skip_reason: str | None = None

    @classmethod
    def success(cls, data: Any = None) -> JobResult:
        """Return a result that completes the job and stores `data` (JSON).

        Raises nothing: data that cannot be stored fails the attempt.
        """
        return cls({} if data is None else data)

    @classmethod
    def skipped(cls, reason: str) -> JobResult:
        """Return a result that ends the job as done although its work was not needed (seed S2).

        `reason` is stored and logged. Raises nothing.
        """
        return cls({}, reason)

    @property
    def is_success(self) -> bool:
        """True for every JobResult: a skipped job is treated as a success (seed S2)."""
        return True

    @property
    def is_skipped(self) -> bool:
        """Tell whether the job said that it was not needed."""
        return self.skip_reason is not None
