"""What an enqueue adds to a checked request: the middleware's context, then the signature."""

from __future__ import annotations

from dataclasses import replace

from django_leasequeue.codec import decode_payload, encode
from django_leasequeue.conf import get_conf
from django_leasequeue.core.lease import Claimed
from django_leasequeue.core.request import Request
from django_leasequeue.exceptions import EnqueueError
from django_leasequeue.middleware.chain import get_chain
from django_leasequeue.signing import Sealed, signature_of

__all__ = [
    "MAX_CONTEXT_BYTES",
    "seal",
    "sealed_claim",
    "sign_request",
    "signed_for",
    "with_context",
]

MAX_CONTEXT_BYTES = 64 * 1024


def seal(request: Request) -> Request:
    """Return the request with its context and, if SIGNING_KEYS are set, its signature.

    Whatever a middleware's `on_enqueue` raises goes through. Raises EnqueueError, without values,
    for a context that cannot be stored.
    """
    return sign_request(with_context(request))


def with_context(request: Request) -> Request:
    """Return the request with what the middleware puts into its context."""
    context = get_chain().context_for(request.job_type, request.queue, request.payload)
    if not context:
        return request
    try:
        encoded = encode(context, what="context", limit=MAX_CONTEXT_BYTES)
    except (TypeError, ValueError) as error:
        raise EnqueueError(f"{request.job_type}: the middleware's {error}") from None
    return replace(request, context=encoded)


def sign_request(request: Request) -> Request:
    """Return the request with its signature, as it is when signing is off."""
    if not get_conf().SIGNING_KEYS:
        return request
    return replace(request, signature=signature_of(_sealed_request(request)))


def signed_for(request: Request, idempotency_key: str) -> Request:
    """Return the request with the signature that it needs in a row that is there already.

    That row keeps its idempotency_key, which for a key that ends with its job is another one.
    """
    if not request.signature:
        return request
    sealed = _sealed_request(request)._replace(idempotency_key=idempotency_key)
    return replace(request, signature=signature_of(sealed))


def _sealed_request(request: Request) -> Sealed:
    return Sealed(
        request.job_type,
        request.queue,
        request.max_attempts,
        request.idempotency_key,
        request.payload_version,
        decode_payload(request.payload),
        decode_payload(request.context),
    )


def sealed_claim(job: Claimed) -> Sealed:
    """Return what the signature of a claimed job covers.

    Raises RejectedJob when its payload or its context is no JSON object.
    """
    return Sealed(
        job.job_type,
        job.queue,
        job.max_attempts,
        job.idempotency_key,
        job.payload_version,
        decode_payload(job.payload),
        decode_payload(job.context, "context"),
    )
