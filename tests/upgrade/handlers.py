"""Job types that each release writes jobs of, and each later version has to run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django_leasequeue import Fixed, JobContext, JobError, Reject, job
from django_leasequeue.registry import registry

#: In the settings of whoever writes and whoever runs them.
LEASEQUEUE = {
    "SIGNING_KEYS": ["a key that every release has signed with"],
    "MIDDLEWARE": ["django_leasequeue.middleware.LocaleMiddleware"],
    "UNKNOWN_JOB_TYPES": "park",
}
#: Values that one database or another writes in a way of its own.
PAYLOAD: dict[str, Any] = {
    "number": 2**53 - 1,
    "share": 0.1,
    "text": "Käse 'n' 😀 \\ \"quoted\"",
    "nothing": None,
    "list": [1, True, {"deep": []}],
}

#: What happened, in the order in which it did.
Seen = list[tuple[str, Any]]


@contextmanager
def declared(seen: Seen, *, all_known: bool = True) -> Iterator[None]:
    """Know the job types inside the block; what runs is noted in `seen`."""
    before = set(registry)
    try:
        _declare(seen)
        if all_known:
            job("upgrade.parked")(lambda: seen.append(("parked", None)))
        yield
    finally:
        for kind in set(registry) - before:
            registry.remove(kind.name)


def _declare(seen: Seen) -> None:
    def note(**payload: Any) -> dict[str, int]:
        seen.append(("note", payload))
        return {"rows": len(payload)}

    def steps(context: JobContext, order: int) -> None:
        with context.effect("charge") as first:
            seen.append(("charged", first))
        seen.append(("checkpoint", context.last_checkpoint))
        seen.append(("language", context.context["locale"]["language"]))
        seen.append(("key for the remote", context.effect_key("charge")))
        if context.last_checkpoint is None:
            context.progress(0.5, "half")
            context.checkpoint({"at": order})
            raise JobError("the remote is away")

    def bury(context: JobContext, error: BaseException) -> None:
        seen.append(("buried", f"{type(error).__name__}: {error}"))

    def reject(order: int) -> None:
        seen.append(("rejected", order))
        raise Reject("no such order")

    job("upgrade.note")(note)
    job("upgrade.steps", takes_context=True, backoff=Fixed(3600))(steps)
    job("upgrade.reject", failed=bury)(reject)
