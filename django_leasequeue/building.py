"""Typed values from JSON and back: dataclasses, TypedDicts and pydantic models.

What an annotation says that is not known here is not checked, and never an error. Problems name
fields, never values.
"""

from __future__ import annotations

import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from datetime import date, datetime
from decimal import Decimal
from enum import Enum
from functools import lru_cache
from typing import (
    Any,
    Literal,
    NamedTuple,
    NotRequired,
    Required,
    Union,
    get_args,
    get_origin,
    is_typeddict,
)
from uuid import UUID

from django_leasequeue.misfits import Misfit, unknown_fields
from django_leasequeue.pydantics import dumped, is_pydantic, validated

__all__ = ["as_json", "build", "has_model", "is_model", "resolved"]

_PLAIN: dict[Any, tuple[type, ...]] = {str: (str,), int: (int,), float: (int, float), bool: (bool,)}
_TEXTS: dict[Any, Callable[[str], Any]] = {
    datetime: datetime.fromisoformat,
    date: date.fromisoformat,
    UUID: UUID,
    Decimal: Decimal,
}


def resolved(annotations: Mapping[str, Any], names: dict[str, Any]) -> dict[str, Any]:
    """Return the annotations, texts resolved with `names`; what cannot be resolved is left out."""
    found: dict[str, Any] = {}
    for name, annotation in annotations.items():
        holder = types.SimpleNamespace(__annotations__={name: annotation})
        try:
            found |= typing.get_type_hints(holder, names)
        except Exception:  # noqa: BLE001, S112  (an import for type checkers only, for one)
            continue
    return found


def is_model(kind: Any) -> bool:
    """Tell whether a value of this type is built from a JSON object: see `build`."""
    origin = get_origin(kind) or kind
    return isinstance(origin, type) and (
        is_dataclass(origin) or is_typeddict(origin) or is_pydantic(origin)
    )


def has_model(kind: Any) -> bool:
    """Tell whether a model is in the annotation: `list[Line]` and `Order | None` have one."""
    return is_model(kind) or any(map(has_model, get_args(kind)))


def build(kind: Any, value: Any, where: str = "") -> Any:
    """Return what `kind` makes of JSON data; `where` names the value in problems.

    Texts become datetime, date, UUID and Decimal, where those are annotated; nothing else is
    converted. Raises Misfit.
    """
    kind = getattr(kind, "__supertype__", kind)  # NewType
    if kind in (None, types.NoneType):
        return _wanted(value is None, value, where, "null")
    origin = get_origin(kind)
    if origin in (Union, types.UnionType):
        return _any_of(get_args(kind), value, where)
    if origin is Literal:
        fits = any(value == item and type(value) is type(item) for item in get_args(kind))
        return _wanted(fits, value, where, f"one of {', '.join(map(repr, get_args(kind)))}")
    if is_model(kind):
        return _model(origin or kind, value, where)
    if origin in (list, dict) or kind in (list, dict):
        return _container(origin or kind, get_args(kind), value, where)
    return _leaf(kind, value, where)


def _wanted(fits: bool, value: Any, where: str, what: str) -> Any:
    if not fits:
        raise Misfit(f"{where or 'it'} must be {what}")
    return value


def _leaf(kind: Any, value: Any, where: str) -> Any:
    if not isinstance(kind, type):
        return value
    if kind in _PLAIN:
        fits = isinstance(value, _PLAIN[kind]) and (kind is bool or not isinstance(value, bool))
        return _wanted(fits, value, where, kind.__name__)
    is_enum = issubclass(kind, Enum)
    convert: Callable[[Any], Any] | None = kind if is_enum else _TEXTS.get(kind)
    if convert is None:
        return value
    _wanted(isinstance(value, str) or is_enum, value, where, _text(kind))
    try:
        return convert(value)
    except Exception:  # noqa: BLE001  (a project's Enum may raise what quotes the value)
        raise Misfit(f"{where or 'it'} must be {_text(kind)}") from None


def _text(kind: type) -> str:
    return f"a text for {kind.__name__}"


def _any_of(kinds: tuple[Any, ...], value: Any, where: str) -> Any:
    """Return what the first kind that fits makes of it; problems inside of the only model."""
    if value is None and types.NoneType in kinds:
        return None
    misfits = []
    for kind in kinds:
        try:
            return build(kind, value, where)
        except Misfit as misfit:
            misfits.append((kind, misfit))
    others = [misfit for kind, misfit in misfits if kind is not types.NoneType]
    if len(others) == 1:
        raise others[0]
    names = " or ".join(getattr(kind, "__name__", str(kind)) for kind in kinds)
    raise Misfit(f"{where or 'it'} must be {names.replace('NoneType', 'null')}")


def _container(kind: Any, inner: tuple[Any, ...], value: Any, where: str) -> Any:
    what = "a list" if kind is list else "an object"
    _wanted(isinstance(value, kind), value, where, what)
    if not inner:
        return value
    if kind is list:
        parts = {f"{where}[{number}]": item for number, item in enumerate(value)}
        return list(_each({place: (inner[0], item) for place, item in parts.items()}).values())
    entries = enumerate(value.values())
    built = _each({f"{where}[entry {number}]": (inner[1], item) for number, item in entries})
    return dict(zip(value, built.values(), strict=True))


def _each(parts: Mapping[str, tuple[Any, Any]], prefix: str = "") -> dict[str, Any]:
    """Build every part, and only then raise the problems of all that do not fit."""
    built: dict[str, Any] = {}
    problems: list[str] = []
    for name, (kind, value) in parts.items():
        try:
            built[name] = build(kind, value, f"{prefix}{name}")
        except Misfit as misfit:
            problems += misfit.problems
    if problems:
        raise Misfit(*problems)
    return built


class _Members(NamedTuple):
    """The fields of a dataclass or TypedDict: their annotations, and which must be there."""

    kinds: dict[str, Any]
    required: frozenset[str]


@lru_cache(maxsize=1024)
def _members(kind: Any) -> _Members:
    try:
        hints = typing.get_type_hints(kind)
    except Exception:  # noqa: BLE001  (unknown annotations are not checked)
        hints = {}
    if is_typeddict(kind):
        names = kind.__required_keys__ | kind.__optional_keys__
        return _Members({name: hints.get(name, Any) for name in names}, _required(kind))
    members = [item for item in fields(kind) if item.init]
    return _Members(
        {item.name: hints.get(item.name, Any) for item in members},
        frozenset(item.name for item in members if _is_required(item)),
    )


def _required(kind: Any) -> frozenset[str]:
    """Return the keys that a TypedDict must have; it cannot read annotations that are texts."""
    try:
        hints = typing.get_type_hints(kind, include_extras=True)
    except Exception:  # noqa: BLE001  (as above)
        hints = {}
    words = {name: get_origin(hint) for name, hint in hints.items()}
    required = kind.__required_keys__ - {n for n, word in words.items() if word is NotRequired}
    return frozenset(required | {n for n, word in words.items() if word is Required})


def _is_required(item: Field[Any]) -> bool:
    return item.default is MISSING and item.default_factory is MISSING


def _model(kind: Any, value: Any, where: str) -> Any:
    if is_pydantic(kind):
        return validated(kind, value, where)
    _wanted(isinstance(value, dict), value, where, "an object")
    kinds, required = _members(kind)
    prefix = f"{where}." if where else ""
    problems = [f"{prefix}{name} is missing" for name in kinds if name in required - set(value)]
    if unknown := value.keys() - kinds.keys():
        problems.append(f"{where}: " * bool(where) + unknown_fields(len(unknown), kinds))
    if problems:
        raise Misfit(*problems)
    built = _each({name: (kinds[name], item) for name, item in value.items()}, prefix)
    if is_typeddict(kind):
        return built
    try:
        return kind(**built)
    except Exception as error:  # noqa: BLE001  (its __post_init__ is the project's code)
        raise Misfit(f"{where or kind.__name__} was refused: {type(error).__name__}") from None


def as_json(value: Any) -> Any:  # noqa: PLR0911  (a table of types)
    """Return typed values, at any depth, as the JSON data that `build` makes them of.

    What it does not know is left as it is.
    """
    kind: Any = type(value)
    if is_pydantic(kind):
        return dumped(value)
    if is_dataclass(value) and not isinstance(value, type):
        return {
            item.name: as_json(getattr(value, item.name)) for item in fields(value) if item.init
        }
    if isinstance(value, Enum):
        return as_json(value.value)
    if isinstance(value, date):  # datetime is one
        return value.isoformat()
    if isinstance(value, UUID | Decimal):
        return str(value)
    if isinstance(value, dict):
        return {key: as_json(item) for key, item in value.items()}
    return [as_json(item) for item in value] if isinstance(value, list) else value
