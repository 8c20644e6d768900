"""Models of pydantic, where it is installed: built from JSON data, and problems without values."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from django_leasequeue.misfits import Misfit

__all__ = ["dumped", "is_pydantic", "validated"]


def is_pydantic(kind: Any) -> bool:
    """Tell whether it is a model of pydantic 2, or one of its dataclasses."""
    # Classes of pydantic 1 have no such attribute.
    return isinstance(kind, type) and hasattr(kind, "__pydantic_validator__")


@lru_cache(maxsize=1024)
def _adapter(kind: Any) -> Any:
    from pydantic import TypeAdapter

    return TypeAdapter(kind)


def dumped(value: Any) -> Any:
    """Return a model's object as the JSON data that `validated` makes it of."""
    kind: Any = type(value)
    return _adapter(kind).dump_python(value, mode="json", by_alias=True, round_trip=True)


def validated(kind: Any, value: Any, where: str) -> Any:
    """Return what a model makes of JSON data; `where` names it in problems. Raises Misfit."""
    from pydantic import ValidationError

    try:
        return _adapter(kind).validate_json(json.dumps(value))
    except ValidationError as error:
        # Its messages may quote values; where and what kind of error it is says enough.
        found = error.errors(include_url=False, include_context=False, include_input=False)
        prefix = (where,) if where else ()
        problems = [(_place(kind, (*prefix, *item["loc"]), prefix), item["type"]) for item in found]
    except Exception as error:  # noqa: BLE001  (a validator of the project's may raise anything)
        raise Misfit(f"{where or kind.__name__} was refused: {type(error).__name__}") from None
    raise Misfit(*(f"{place or kind.__name__}: {what}" for place, what in problems))


def _place(kind: Any, parts: tuple[Any, ...], shown: tuple[str, ...]) -> str:
    """Return where in a payload a problem is, without keys that are no field of the model."""
    names = {*_property_names(_schema(kind)), *shown}
    return ".".join(
        str(part) if isinstance(part, int) or part in names else "(entry)" for part in parts
    )


def _schema(kind: Any) -> Any:
    try:
        return _adapter(kind).json_schema()
    except Exception:  # noqa: BLE001  (not every model has one; then no name is told)
        return {}


def _property_names(schema: Any) -> Iterator[str]:
    for name, part in schema.items() if isinstance(schema, dict) else ():
        if name == "properties":
            yield from part
        for item in part if isinstance(part, list) else (part,):
            yield from _property_names(item)
