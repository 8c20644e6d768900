"""The house: who may write, who may ask, which way imports go, and that contracts are written."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import django_leasequeue
from tests import house_rules
from tests.house_rules import PACKAGE, ROOT, module_name


def all_but(*places: Path) -> list[Any]:
    return [
        pytest.param(path, id=module_name(path))
        for path in house_rules.sources()
        if not any(path.is_relative_to(place) for place in places)
    ]


MODULES = all_but()


def parse(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("path", all_but(PACKAGE / "core"))
def test_only_the_core_writes_status_counters_and_leases(path):
    assert house_rules.forbidden_writes(parse(path)) == []


@pytest.mark.parametrize(
    "code",
    [
        "Job.objects.filter(pk=1).update(status='ready')",
        "Job.objects.create(job_type='a', attempts=3)",
        "Job.objects.update_or_create(pk=1, defaults={'lease_until': None})",
        "Job.objects.bulk_update(jobs, ['crashes'])",
        "job.status = 'done'",
        "job.attempts += 1",
        "job.save()",
        "cursor.execute('UPDATE leasequeue_job SET priority = 1')",
        "cursor.execute(f'INSERT INTO {table} (a) VALUES (1)')",
    ],
)
def test_a_write_is_seen(code):
    assert house_rules.forbidden_writes(ast.parse(code))


@pytest.mark.parametrize("path", all_but(PACKAGE / "core" / "dialect.py"))
def test_only_the_dialect_asks_which_database_it_is_on(path):
    assert house_rules.database_questions(parse(path)) == []


@pytest.mark.parametrize(
    "code",
    ["connection.vendor == 'mysql'", "getattr(c, 'mysql_is_mariadb')", "c.settings_dict['ENGINE']"],
)
def test_a_question_is_seen(code):
    assert house_rules.database_questions(ast.parse(code))


def layers() -> list[set[str]]:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    (contract,) = settings["tool"]["importlinter"]["contracts"]
    assert "ignore_imports" not in contract
    return [set(re.findall(r"[\w.]+", layer)) for layer in contract["layers"]]


def test_every_module_has_its_place_in_the_layers():
    placed = set().union(*layers())

    def is_placed(name: str) -> bool:
        return any(name == module or name.startswith(f"{module}.") for module in placed)

    names = {module_name(path) for path in house_rules.sources()}
    assert {name for name in names if not is_placed(name)} == {
        "django_leasequeue",
        "django_leasequeue.core",
    }


def test_the_foundation_knows_no_database():
    for name in layers()[-1]:
        path = ROOT.joinpath(*name.split(".")).with_suffix(".py")
        imports = set(house_rules.imported_modules(parse(path))) if path.exists() else set()
        assert not {module for module in imports if f"{module}.".startswith("django.db.")}, name


def test_importing_the_package_touches_no_model():
    code = (
        "import sys, django_leasequeue as package; package.Skip; package.Exponential\n"
        "print([name for name in ('django.db', 'django_leasequeue.models') if name in sys.modules])"
    )
    answer = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (answer.stdout.strip(), answer.stderr) == ("[]", "")


@pytest.mark.parametrize("name", django_leasequeue.__all__)
def test_every_public_name_is_there_and_documented(name):
    assert inspect.getdoc(getattr(django_leasequeue, name))


@pytest.mark.parametrize("path", MODULES)
def test_every_module_says_its_idea(path):
    text = ast.get_docstring(parse(path))
    assert text
    assert len(text.splitlines()) <= 6


@pytest.mark.parametrize("path", MODULES)
def test_what_a_module_exports_has_a_contract(path):
    module = importlib.import_module(module_name(path))
    assert [label for label, thing in exported(module) if not inspect.getdoc(thing)] == []


def exported(module: ModuleType) -> Iterator[tuple[str, Any]]:
    """Yield the functions, the classes and the classes' own public methods in `__all__`."""
    written = house_rules.defined_names(parse(Path(str(module.__file__))))
    for name in getattr(module, "__all__", ()):
        thing = getattr(module, name)
        if not getattr(thing, "__module__", "").startswith("django_leasequeue"):
            continue  # another library's, passed on
        if inspect.isclass(thing) or inspect.isroutine(thing):
            yield name, thing
        for member in vars(thing) if inspect.isclass(thing) else ():
            if f"{name}.{member}" in written and not is_inherited(thing, member):
                yield f"{name}.{member}", getattr(thing, member)


def is_inherited(cls: type, member: str) -> bool:
    """Whether a base class outside the package prescribes the method and is its contract."""
    bases = [
        base for base in cls.__mro__[1:] if not base.__module__.startswith("django_leasequeue")
    ]
    return any(member in vars(base) for base in bases)
