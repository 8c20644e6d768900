"""What a handler takes: its parameters, and the models among their annotations.

A parameter annotated with a dataclass, a TypedDict or a pydantic model gets one, built from its
value in the payload. If it is the only one and called `payload`, it gets all of the payload, and
`**fields: Unpack[SomeTypedDict]` says what the rest of it is.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Unpack, get_args, get_origin

from django_leasequeue.building import as_json, build, has_model, is_model, resolved
from django_leasequeue.misfits import Misfit, unknown_fields

__all__ = ["Signature", "handler_signature", "parameters_of"]

WHOLE = "payload"


def parameters_of(handler: Callable[..., Any]) -> list[inspect.Parameter]:
    """Return what a handler is called with: a function's parameters, or those of `handle`."""
    cls: Any = handler
    if not inspect.isclass(handler):
        return list(_signature(handler).parameters.values())
    static = inspect.getattr_static(cls, "handle")
    parameters = list(_signature(cls.handle).parameters.values())
    return parameters if isinstance(static, staticmethod | classmethod) else parameters[1:]


def _signature(function: Callable[..., Any]) -> inspect.Signature:
    if sys.version_info >= (3, 14):
        from annotationlib import Format

        # A name that is imported for type checkers only is no error there.
        return inspect.signature(function, annotation_format=Format.FORWARDREF)
    return inspect.signature(function)


def handler_signature(handler: Callable[..., Any], *, skips: int = 0) -> Signature:
    """Return the signature of a handler without its first `skips` parameters."""
    everything = parameters_of(handler)
    passed, parameters = everything[:skips], everything[skips:]
    function = inspect.unwrap(getattr(handler, "handle", handler))
    hints = resolved(
        {item.name: item.annotation for item in parameters if item.annotation is not item.empty},
        getattr(function, "__globals__", {}),
    )
    models = {name: kind for name, kind in hints.items() if has_model(kind)}
    only = parameters[0] if len(parameters) == 1 else None
    whole = only is not None and only.name == WHOLE and is_model(models.get(WHOLE))
    rest = next((item.name for item in parameters if item.kind is item.VAR_KEYWORD), None)
    return Signature(
        inspect.Signature(parameters),
        {name: kind for name, kind in models.items() if name != rest},
        models[WHOLE] if whole and rest is None else None,
        _unpacked(hints.get(rest)) if rest is not None else None,
        frozenset(item.name for item in (*_bound(handler), *passed)),
    )


def _bound(handler: Callable[..., Any]) -> list[inspect.Parameter]:
    """Return the parameter that a method's object or class is bound to; it has a name as well."""
    if not inspect.isclass(handler):
        return []
    static: Any = inspect.getattr_static(handler, "handle")
    if isinstance(static, staticmethod):
        return []
    first = list(_signature(getattr(static, "__func__", static)).parameters.values())[:1]
    return [item for item in first if item.kind is item.POSITIONAL_OR_KEYWORD]


def _unpacked(kind: Any) -> Any:
    """Return the TypedDict of an `Unpack[...]`, None for what is none."""
    inner = get_args(kind)[0] if get_origin(kind) is Unpack else None
    return inner if is_model(inner) else None


@dataclass(frozen=True, eq=False)
class Signature:
    """Parameters by name; `models` are typed ones, `whole` and `rest` models of many fields.

    `taken` are names that no field can have, because the worker passes something by them.
    """

    parameters: inspect.Signature
    models: Mapping[str, Any]
    whole: Any = None
    rest: Any = None
    taken: frozenset[str] = frozenset()

    @cached_property
    def _takes_any(self) -> bool:
        kinds = [item.kind for item in self.parameters.parameters.values()]
        return inspect.Parameter.VAR_KEYWORD in kinds

    @property
    def names(self) -> Collection[str]:
        """The names of the parameters."""
        return self.parameters.parameters.keys()

    def payload_from(self, args: tuple[Any, ...], payload: dict[str, Any]) -> dict[str, Any]:
        """Return the payload of a call with these arguments. Raises TypeError if they misfit."""
        if self.whole is not None:
            return self._fields(args, payload)
        bound = self.parameters.bind(*args, **payload)
        return {
            name: value
            for parameter in self.parameters.parameters.values()
            if parameter.name in bound.arguments
            for name, value in _named(parameter, bound.arguments[parameter.name])
        }

    def _fields(self, args: tuple[Any, ...], payload: dict[str, Any]) -> dict[str, Any]:
        """Return the payload of a call with one model, or with its fields by name."""
        if not args and not (set(payload) == {WHOLE} and _is_whole(payload[WHOLE])):
            return payload
        fields = as_json(self.parameters.bind(*args, **payload).arguments[WHOLE])
        if not isinstance(fields, dict):
            raise TypeError(f"{WHOLE} must be {self.whole.__name__}, or its fields by name")
        return fields

    def as_json(self, payload: Mapping[str, Any]) -> dict[str, Any]:
        """Return a payload with its typed values as the JSON data that they are stored as."""
        if not self.is_typed:
            return dict(payload)
        return {
            name: as_json(value) if self._is_typed(name) else value
            for name, value in payload.items()
        }

    @property
    def is_typed(self) -> bool:
        """Tell whether anything of a payload is built or checked by annotation."""
        return bool(self.models) or self.rest is not None

    def _is_typed(self, name: str) -> bool:
        if self.whole is not None or name in self.models:
            return True
        return self.rest is not None and name not in self.parameters.parameters

    def arguments(self, payload: dict[str, Any]) -> dict[str, Any]:
        """Return the handler's arguments. Raises TypeError, showing no values, if they misfit."""
        try:
            if self.whole is not None:
                return {WHOLE: build(self.whole, payload)}
            self._check_names(payload)
            self.parameters.bind(**payload)
            return self._built(payload) if self.is_typed else payload
        except Misfit as misfit:
            raise TypeError(str(misfit)) from None

    def _check_names(self, payload: dict[str, Any]) -> None:
        """Refuse fields that the handler does not take; their names may be data, and are untold."""
        for name in sorted(self.taken & payload.keys()):
            raise Misfit(f"a field cannot be called {name!r}: the handler gets something else so")
        if not self._takes_any and (unknown := payload.keys() - self.names):
            raise Misfit(unknown_fields(len(unknown), self.names))

    def _built(self, payload: dict[str, Any]) -> dict[str, Any]:
        arguments: dict[str, Any] = {}
        problems: list[str] = []
        for name, value in payload.items():
            try:
                kind = self.models.get(name)
                arguments[name] = value if kind is None else build(kind, value, name)
            except Misfit as misfit:
                problems += misfit.problems
        if problems:
            raise Misfit(*problems)
        if self.rest is not None:
            known = self.parameters.parameters
            arguments |= build(self.rest, {n: v for n, v in payload.items() if n not in known})
        return arguments

    def with_defaults(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Return arguments together with the defaults of the parameters that they leave out."""
        bound = self.parameters.bind(**arguments)
        bound.apply_defaults()
        return {
            name: value
            for parameter in self.parameters.parameters.values()
            for name, value in _named(parameter, bound.arguments[parameter.name])
        }


def _is_whole(value: Any) -> bool:
    return isinstance(value, Mapping) or is_model(type(value))


def _named(parameter: inspect.Parameter, value: Any) -> list[tuple[str, Any]]:
    if parameter.kind is inspect.Parameter.VAR_KEYWORD:
        return list(value.items())
    return [(parameter.name, value)]
