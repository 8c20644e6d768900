"""Each public name is in front of the type checkers, and the options of `@job` are its fields."""

from __future__ import annotations

import ast
from dataclasses import fields
from pathlib import Path
from typing import get_type_hints

import django_leasequeue
from django_leasequeue.declaration import Declaration, Policy


def test_each_public_name_is_read_by_the_type_checkers() -> None:
    read = {
        node.id
        for path in Path(__file__).parent.glob("*ing.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Name)
    }
    assert set(django_leasequeue.__all__) <= read


def test_the_options_of_job_are_the_fields_of_a_declaration() -> None:
    hints = get_type_hints(Declaration)
    names = [item.name for item in fields(Declaration) if item.name not in {"handler", "name"}]
    assert get_type_hints(Policy) == {name: hints[name] for name in names}
