"""Signatures: proof that a program with the project's key wrote a job, and that nobody changed it.

They cover what decides what runs: job type, queue, max_attempts, idempotency_key, payload version,
payload and context, the last two by value, because servers rewrite JSON.
"""

from __future__ import annotations

import hmac
import json
from collections.abc import Sequence
from typing import Any, NamedTuple

from django.utils.crypto import salted_hmac

from django_leasequeue.conf import get_conf
from django_leasequeue.exceptions import RejectedJob

__all__ = ["Sealed", "canonical", "check_signature", "key_of", "sign", "signature_of", "verify"]

_SALT = "django_leasequeue.signing.1"
_INT_MIN, _INT_MAX = -(2**63), 2**63 - 1


class Sealed(NamedTuple):
    """What a signature covers; `payload` and `context` are decoded JSON."""

    job_type: str
    queue: str
    max_attempts: int
    idempotency_key: str
    payload_version: int
    payload: Any
    context: Any

    def __repr__(self) -> str:
        return f"<Sealed {self.job_type}>"  # no values


def canonical(value: Any) -> str:
    """Return decoded JSON as the one text that all ways to write the same value have.

    Keys are sorted by code point. A whole number has all its digits, however it was written
    (1e2, 100.0 and 100 are one value, and so are 0 and -0.0); any other is the shortest text of
    its double. Raises RecursionError for what is nested too deep.
    """
    return json.dumps(_plain(value), sort_keys=True, separators=(",", ":"))


def _plain(value: Any) -> Any:
    if isinstance(value, bool):
        return value
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, int) and not _INT_MIN <= value <= _INT_MAX:
        return _rounded(value)
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return value


def _rounded(number: int) -> int | str:
    """Return a number past 64 bit as the double that MySQL keeps of it."""
    try:
        return int(float(number))
    except OverflowError:
        return str(number)  # no double: nothing that the queue has written


def signature_of(sealed: Sealed) -> str:
    """Return the signature by the newest key, "" when signing is off."""
    keys = get_conf().SIGNING_KEYS
    return _hexdigest(sealed, keys[0]) if keys else ""


def key_of(sealed: Sealed, signature: str) -> int | None:
    """Return which of SIGNING_KEYS, from 0, made the signature; None when none of them did."""
    return _key_of(sealed, signature, get_conf().SIGNING_KEYS)


def check_signature(sealed: Sealed, signature: str) -> None:
    """Raise RejectedJob, with a fixed text, unless signing is off or the signature is right."""
    keys = get_conf().SIGNING_KEYS
    if not keys:
        return
    if not signature:
        raise RejectedJob("Missing signature")
    if _key_of(sealed, signature, keys) is None:
        raise RejectedJob("Invalid signature")


def sign(job: Any) -> str:
    """Return the signature of a `job`, a `Job`, as it is now, by the newest of SIGNING_KEYS.

    64 hex digits over what a producer decides (seed S2); "" when signing is off. Writes nothing:
    `manage.py leasequeue sign` does. Raises nothing of its own.
    """
    return signature_of(_sealed(job))


def verify(job: Any) -> bool:
    """Tell whether the signature of a `job` is by one of SIGNING_KEYS and fits it as it is now.

    Always False when signing is off (seed S2: an unsigned job is no signed one). Raises nothing.
    """
    return key_of(_sealed(job), job.signature) is not None


def _sealed(job: Any) -> Sealed:
    return Sealed(
        job_type=job.job_type,
        queue=job.queue_name,
        max_attempts=job.max_attempts,
        idempotency_key=job.idempotency_key,
        payload_version=job.payload_version,
        payload=job.payload,
        context=job.context,
    )


def _key_of(sealed: Sealed, signature: str, keys: Sequence[str]) -> int | None:
    if not signature.isascii():
        return None  # compare_digest refuses it
    try:
        for number, key in enumerate(keys):
            if hmac.compare_digest(_hexdigest(sealed, key), signature):
                return number
    except RecursionError:
        pass
    return None


def _hexdigest(sealed: Sealed, key: str) -> str:
    digest = salted_hmac(_SALT, canonical(list(sealed)), secret=key, algorithm="sha256")
    return str(digest.hexdigest())
