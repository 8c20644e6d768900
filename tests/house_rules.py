"""Reading the package's source: who writes what, who asks what, what is documented."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "django_leasequeue"

#: Columns that only the core writes.
PROTECTED = {
    "status",
    "attempts",
    "crashes",
    "claims",
    "releases",
    "lease_until",
    "lease_token",
    "leased_by",
    "claimed_at",
}
_WRITES = re.compile(r"\b(INSERT\s+INTO|UPDATE\s+\S+\s+SET|DELETE\s+FROM|REPLACE\s+INTO)\b")
_WRITING_METHODS = {
    "aupdate",
    "bulk_create",
    "bulk_update",
    "create",
    "get_or_create",
    "update",
    "update_or_create",
}

#: What one would ask to learn which database one is on.
_DATABASE_QUESTIONS = {
    "ENGINE",
    "display_name",
    "mysql_is_mariadb",
    "mysql_version",
    "pg_version",
    "vendor",
}


def sources() -> Iterator[Path]:
    """Yield every module of the package except generated migrations."""
    for path in sorted(PACKAGE.rglob("*.py")):
        if "migrations" not in path.parts:
            yield path


def module_name(path: Path) -> str:
    """Return the dotted name of a module of the package."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def forbidden_writes(tree: ast.AST) -> list[str]:
    """Return where code writes a protected column, or a whole row of a model."""
    docstrings = set(_docstrings(tree))
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            found += _writing_call(node)
        elif isinstance(node, ast.Assign | ast.AugAssign | ast.AnnAssign):
            found += _assigned(node)
        elif node not in docstrings and _WRITES.search(_name_or_text(node) or ""):
            found.append(f"line {getattr(node, 'lineno', '?')}: SQL that writes")
    return found


def _writing_call(node: ast.Call) -> list[str]:
    if not isinstance(node.func, ast.Attribute):
        return []
    names = {keyword.arg for keyword in node.keywords}
    if node.func.attr in {"save", "asave"} and "update_fields" not in names:
        return [f"line {node.lineno}: save() writes every column"]
    if node.func.attr not in _WRITING_METHODS:
        return []
    texts = {item.value for item in ast.walk(node) if isinstance(item, ast.Constant)}
    written = PROTECTED & (names | (texts if node.func.attr != "update" else set()))
    return [f"line {node.lineno}: {node.func.attr}({', '.join(sorted(written))})"] * bool(written)


def _assigned(node: ast.Assign | ast.AugAssign | ast.AnnAssign) -> list[str]:
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    return [
        f"line {node.lineno}: {ast.unparse(target)} = ..."
        for target in targets
        if isinstance(target, ast.Attribute)
        and target.attr in PROTECTED
        and not (isinstance(target.value, ast.Name) and target.value.id == "self")
    ]


def database_questions(tree: ast.AST) -> list[str]:
    """Return where code asks which database it is on."""
    return [
        f"line {getattr(node, 'lineno', '?')}: {name}"
        for node in ast.walk(tree)
        if (name := _name_or_text(node)) in _DATABASE_QUESTIONS
    ]


def _name_or_text(node: ast.AST) -> str | None:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


def _docstrings(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield the texts that stand alone: docstrings, which may quote SQL."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            yield node.value


def imported_modules(tree: ast.AST) -> Iterator[str]:
    """Yield the dotted names that a module imports, wherever in it."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def defined_names(tree: ast.Module) -> set[str]:
    """Return the functions and the public `Class.method`s that a module's text defines."""
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    names = {node.name for node in tree.body if isinstance(node, functions)}
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            methods = [item.name for item in node.body if isinstance(item, functions)]
            names |= {f"{node.name}.{name}" for name in methods if not name.startswith("_")}
    return names
