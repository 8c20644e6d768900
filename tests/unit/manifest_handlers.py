"""Handlers that manifests name by their dotted paths."""

from __future__ import annotations

from django_leasequeue.declaration import Declaration
from django_leasequeue.retry import Fixed


def plain(a: int = 1) -> int:
    return a


def with_context(context: object, a: int = 1) -> object:
    return context


async def coroutine(a: int = 1) -> int:
    return a


class SendInvoice:
    def handle(self, context: object, order_id: int) -> int:
        return order_id

    def failed(self, context: object, error: BaseException) -> None:
        pass


class NeedsArguments:
    def __init__(self, service: object) -> None:
        pass

    def handle(self) -> None:
        pass


declared = Declaration(with_context, "elsewhere", takes_context=True)
#: Says something of everything.
strict = Declaration(
    with_context,
    "elsewhere",
    queue="reports",
    priority=5,
    max_attempts=1,
    max_crashes=2,
    backoff=Fixed(7),
    timeout=60,
    lease=120,
    atomic=True,
    takes_context=True,
    permanent=(LookupError,),
    failed=plain,
    sensitive=("a",),
    key="k",
    key_until="finished",
    version=2,
    upcast=lambda payload, version: payload,
)
not_callable = 5
