"""The statements that are in the code: each call of `tagged`, read there, and met at run time."""

from __future__ import annotations

import ast
import importlib
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import pytest

from django_leasequeue.core.transaction import tagged
from tests.house_rules import PACKAGE, module_name

#: A place in the code: its module and the line of the call.
Place = tuple[str, int]


@cache
def sites() -> dict[Place, str]:
    """Return the name of every statement of the core: "settle._update", "insert._holder 2"."""
    found: dict[Place, str] = {}
    for path in sorted((PACKAGE / "core").rglob("*.py")):
        module = module_name(path)
        counts: Counter[str] = Counter()
        for line, function in _calls(ast.parse(path.read_text(encoding="utf-8")), ""):
            name = f"{module.removeprefix('django_leasequeue.core.')}.{function}"
            counts[name] += 1
            number = "" if counts[name] == 1 else f" {counts[name]}"
            found[module, line] = f"{name}{number}"
    return found


def _calls(node: ast.AST, inside: str) -> Iterator[tuple[int, str]]:
    """Yield the line of each call of `tagged`, and the function around it."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef):
            yield from _calls(child, child.name)
            continue
        if isinstance(child, ast.Call) and getattr(child.func, "id", "") == "tagged":
            yield child.lineno, inside
        yield from _calls(child, inside)


@contextmanager
def noting_sites() -> Iterator[dict[str, set[str]]]:
    """Collect, inside the block, which statement each SQL text was made by."""
    made: dict[str, set[str]] = {}

    def note(tag: str, sql: str) -> str:
        frame = sys._getframe(1)
        whole = tagged(tag, sql)
        place = (frame.f_globals["__name__"], frame.f_lineno)
        made.setdefault(whole, set()).add(sites()[place])
        return whole

    with pytest.MonkeyPatch.context() as patch:
        for name in {module for module, _line in sites()}:
            module: Any = importlib.import_module(name)
            patch.setattr(module, "tagged", note)
        yield made


def met(made: dict[str, set[str]], seen: Iterable[str]) -> set[str]:
    """Return the statements among what connections have seen, alone or behind their BEGIN."""
    return {site for sql in set(seen) for site in made.get(sql.removeprefix("BEGIN; "), ())}
