"""JSON in and out, one set of rules on every database, and error text that is safe to store.

The rules refuse what some server would refuse or change: NaN and Infinity (MySQL 3140, MariaDB
4025), integers past 64 bit (MySQL makes floats of them), NUL and lone surrogates (PostgreSQL),
keys that are not strings (Python's encoder collapses 1, True and "1" into one).
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Collection
from pathlib import Path
from types import TracebackType
from typing import Any

from django_leasequeue.exceptions import JobError, Reject, RejectedJob, Retry
from django_leasequeue.outcomes import ErrorSummary

__all__ = [
    "ERROR_TEXT_LENGTH",
    "MASK",
    "clean_text",
    "decode_payload",
    "digest_key",
    "encode",
    "masked",
    "summarize",
]

ERROR_TEXT_LENGTH = 4000
#: What an operator sees in place of a sensitive value.
MASK = "********"
_MAX_FRAMES = 40
_MAX_DEPTH = 31  # MariaDB refuses documents nested deeper (error 4025), MySQL those over 100
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
_INT_MIN, _INT_MAX = -(2**63), 2**63 - 1


class _Refused(Exception):
    """A value cannot be stored; `places` lead to it, and are only made when there is one."""

    def __init__(self, kind: type[Exception], text: str) -> None:
        super().__init__(text)
        self.kind = kind
        self.text = text
        self.places: list[str] = []

    def told(self, what: str) -> Exception:
        """Return the error, of the kind that callers know, with the place."""
        return self.kind(f"{what}{''.join(reversed(self.places))} {self.text}")


def _check(value: Any, depth: int, seen: tuple[int, ...], names: Collection[str] = ()) -> None:
    """Raise _Refused for the first value that cannot be stored."""
    if value is None or isinstance(value, bool):
        return
    if isinstance(value, str):
        if _UNSTORABLE.search(value):
            raise _Refused(ValueError, "holds a NUL character or a lone surrogate")
    elif isinstance(value, int):
        if not _INT_MIN <= value <= _INT_MAX:
            text = "is an integer outside the 64 bit range; send it as a string"
            raise _Refused(ValueError, text)
    elif isinstance(value, float):
        if not math.isfinite(value):
            raise _Refused(ValueError, "is NaN or infinite, which JSON does not have")
    elif isinstance(value, dict | list):
        _check_inside(value, depth, seen, names)
    else:
        raise _Refused(
            TypeError,
            f"is a {type(value).__name__}; JSON has only str, int, float, bool, None, "
            "dict and list: convert it first",
        )


def _check_inside(
    value: dict[Any, Any] | list[Any], depth: int, seen: tuple[int, ...], names: Collection[str]
) -> None:
    """Check what is inside; keys are data, like values, and told if they are in `names` only."""
    if id(value) in seen:
        raise _Refused(ValueError, "contains itself")
    if depth == _MAX_DEPTH:
        raise _Refused(ValueError, f"is nested deeper than {_MAX_DEPTH} levels")
    seen = (*seen, id(value))
    keys: list[str] = _checked_keys(value) if isinstance(value, dict) else []
    items = value.values() if isinstance(value, dict) else value
    done = 0
    try:
        for item in items:
            _check(item, depth + 1, seen)
            done += 1
    except _Refused as refused:
        named = repr(keys[done]) if keys and keys[done] in names else f"entry {done}"
        refused.places.append(f"[{named if keys else done}]")
        raise


def _checked_keys(value: dict[Any, Any]) -> list[str]:
    for key in value:
        if not isinstance(key, str):
            text = f"has a key of type {type(key).__name__}; keys are strings"
            raise _Refused(TypeError, text)
        if _UNSTORABLE.search(key):
            raise _Refused(ValueError, "has a key with a NUL character or a lone surrogate")
    return list(value)


def _dumps(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def _whole(value: Any) -> Any:
    """Return `value` with all digits of its floats from 1e16.

    PostgreSQL makes an integer of "1.2e+16", and its shortest digits are not the same number.
    """
    if isinstance(value, float) and abs(value) >= 1e16:
        return int(value)
    if isinstance(value, list):
        return [_whole(item) for item in value]
    return {key: _whole(item) for key, item in value.items()} if isinstance(value, dict) else value


def _integer(digits: str) -> int | float:
    """Return a JSON integer; past 64 bit it was a float, and may be sent again as one."""
    number = int(digits)
    return number if _INT_MIN <= number <= _INT_MAX else float(number)


#: Made once: `json.loads` with an option makes a decoder for every call.
_DECODER = json.JSONDecoder(parse_int=_integer)


def encode(value: Any, *, what: str, limit: int, names: Collection[str] = ()) -> str:
    """Return `value` as JSON text that every supported server stores unchanged in value.

    `what` names the value in errors, which never show what is in it, nor keys but those of its
    top level that are in `names`; `limit` is bytes of UTF-8.
    Raises TypeError for types JSON lacks and ValueError for everything else that is refused.
    """
    try:
        _check(value, 0, (), names)
    except _Refused as refused:
        raise refused.told(what) from None
    text = _dumps(value)
    if "e+" in text:
        text = _dumps(_whole(value))
    size = len(text.encode())
    if size > limit:
        raise ValueError(
            f"{what} is {size} bytes of JSON, above the limit of {limit}; "
            "store the data elsewhere and send a reference to it"
        )
    return text


def decode_payload(text: str | bytes, what: str = "payload") -> dict[str, Any]:
    """Return the payload, or the context, of a job. RejectedJob when it is no JSON object."""
    try:
        value = _DECODER.decode(text if isinstance(text, str) else text.decode())
    except (ValueError, OverflowError, RecursionError):
        raise RejectedJob(f"Malformed job {what}: not JSON") from None
    if not isinstance(value, dict):
        raise RejectedJob(f"Malformed job {what}: not a JSON object")
    return value


def masked(data: Any, names: Collection[str]) -> Any:
    """Return JSON data with MASK for every value, at any depth, that has one of these names."""
    if not names:
        return data
    if isinstance(data, list):
        return [masked(item, names) for item in data]
    if not isinstance(data, dict):
        return data
    return {key: MASK if key in names else masked(item, names) for key, item in data.items()}


def digest_key(key: str) -> str:
    """Return the SHA-256 of `key` in hex, as stored in idempotency_key.

    Raises TypeError or ValueError when `key` is no text, is empty or cannot be encoded.
    """
    if not isinstance(key, str):
        raise TypeError(f"key is a {type(key).__name__}; it must be a string")
    if not key:
        raise ValueError("key is empty; leave it out for a job without one")
    try:
        return hashlib.sha256(key.encode()).hexdigest()
    except UnicodeEncodeError:
        raise ValueError("key holds a lone surrogate") from None


def clean_text(text: str, limit: int = ERROR_TEXT_LENGTH) -> str:
    """Return `text` as every server can store it: cut to `limit`, what none stores replaced."""
    return _UNSTORABLE.sub("\N{REPLACEMENT CHARACTER}", text[:limit])


def _frames(traceback: TracebackType | None) -> list[tuple[str, int, str]]:
    """Return (file, line, function) of the innermost frames, outermost of them first."""
    found: list[tuple[str, int, str]] = []
    while traceback is not None:
        code = traceback.tb_frame.f_code
        found.append((code.co_filename, traceback.tb_lineno, code.co_qualname))
        if len(found) > _MAX_FRAMES:
            del found[0]
        traceback = traceback.tb_next
    return found


_STANDARD_LIBRARY = f"{Path(json.__file__).parent.parent}/"
_FOREIGN = ("/site-packages/", "/dist-packages/", "/django_leasequeue/", _STANDARD_LIBRARY)


def _own_frame(frames: list[tuple[str, int, str]]) -> str:
    """Return the innermost frame of the project's own code: lines move, so it goes by name."""
    for file, _line, function in reversed(frames):
        if not any(part in file for part in _FOREIGN) and not file.startswith("<"):
            return f"{file.rsplit('/', 1)[-1]}:{function}"
    return ""


def _path_of(kind: type) -> str:
    """Return a class's dotted path; Python's and the queue's own go by their bare names."""
    if kind.__module__.partition(".")[0] in ("builtins", "django_leasequeue"):
        return kind.__qualname__
    return f"{kind.__module__}.{kind.__qualname__}"


def _message(error: BaseException) -> str:
    try:
        return str(error)
    except BaseException:  # noqa: BLE001  (a broken __str__, even one that exits)
        return "(its message cannot be shown)"


def summarize(
    error: BaseException, *, job_type: str = "", with_message: bool = False
) -> ErrorSummary:
    """Return what is stored of `error`: class, frames without values, and a fingerprint.

    The message is kept only where its author vouches for it (JobError and its subclasses, Reject,
    Retry) or `with_message`. Never raises, and the result is storable on every server.
    """
    kind = type(error)
    name = clean_text(kind.__qualname__, 255)
    vouched = with_message or isinstance(error, JobError | Reject | Retry)
    message = _message(error) if vouched else ""
    frames = _frames(error.__traceback__)
    grouping = f"{job_type}\0{kind.__module__}.{name}\0{_own_frame(frames)}"
    return ErrorSummary(
        error_class=clean_text(_path_of(kind), 255),
        text=clean_text(f"{name}: {message}" if message else name),
        frames=tuple(
            clean_text(f"{file}:{line} {function}", 500) for file, line, function in frames
        ),
        fingerprint=hashlib.sha256(grouping.encode("utf-8", "replace")).hexdigest()[:16],
    )
