"""Handlers that manifests name by their dotted paths."""

from __future__ import annotations

from django_leasequeue.declaration import Declaration


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
not_callable = 5
