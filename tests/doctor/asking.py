"""Short words for what is found."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from django_leasequeue.doctor.findings import Finding


def ids(findings: Iterable[Finding]) -> list[str]:
    """Return the ids without their common part."""
    return [one.kind.id.removeprefix("leasequeue.") for one in findings]


def only(diagnosis: Callable[..., Iterable[Finding]], *arguments: Any) -> Finding:
    """Return the one finding of a diagnosis."""
    (found,) = diagnosis(*arguments)
    return found
