"""Which tasks a worker knows, and what a row can make it import."""

from __future__ import annotations

import sys
from textwrap import dedent

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.test import override_settings

from django_leasequeue.backend import discovery
from django_leasequeue.backend.compat import task
from django_leasequeue.registry import registry
from tests.backend import sample

OURS = {"default": {"BACKEND": "django_leasequeue.backend.LeaseQueueBackend"}}


@pytest.fixture
def package(tmp_path, monkeypatch):
    """Write modules of a package that is importable, and forgotten after the test."""
    monkeypatch.syspath_prepend(tmp_path)
    before = set(registry)

    def write(**modules):
        (tmp_path / "shop").mkdir(exist_ok=True)
        for name, text in {"__init__": "", **modules}.items():
            (tmp_path / "shop" / f"{name}.py").write_text(dedent(text))

    yield write
    for name in [name for name in sys.modules if name.partition(".")[0] == "shop"]:
        del sys.modules[name]
    for kind in set(registry) - before:
        registry.remove(kind.name)


TASKS = f"from {task.__module__} import task\n@task\ndef send():\n    pass\n"


def test_a_module_called_tasks_is_known_at_start(package):
    package(tasks=TASKS)
    with override_settings(INSTALLED_APPS=["django_leasequeue", "shop"], TASKS=OURS):
        assert registry.get("shop.tasks.send") is not None


def test_named_modules_are_known_at_start(package):
    package(emails=TASKS)
    with override_settings(
        TASKS={"default": {**OURS["default"], "OPTIONS": {"MODULES": ["shop.emails"]}}}
    ):
        discovery.discover()
    assert registry.get("shop.emails.send") is not None


def test_another_module_of_an_app_is_imported_when_a_job_names_it(package):
    package(emails=TASKS)
    with override_settings(INSTALLED_APPS=["django_leasequeue", "shop"], TASKS=OURS):
        assert registry.get("shop.emails.send") is None
        assert registry.find("shop.emails.send").name == "shop.emails.send"


def test_modules_that_are_not_the_projects_are_not_imported(package):
    package(emails=TASKS)
    assert registry.find("shop.emails.send") is None
    assert "shop.emails" not in sys.modules
    assert registry.find("antigravity.fly") is None
    assert "antigravity" not in sys.modules


def test_what_is_no_task_is_not_run(package):
    package(other="def plain():\n    pass\nvalue = 3\n")
    with override_settings(INSTALLED_APPS=["django_leasequeue", "shop"], TASKS=OURS):
        for name in ("plain", "value", "nothing", "__name__"):
            assert registry.find(f"shop.other.{name}") is None
        assert registry.find("shop.nowhere.send") is None
    assert registry.find("os.system") is None


def test_a_module_that_cannot_be_imported_says_so(package):
    package(broken="import no_such_library\n", wrong="raise RuntimeError('at import')\n")
    with override_settings(INSTALLED_APPS=["django_leasequeue", "shop"], TASKS=OURS):
        with pytest.raises(ModuleNotFoundError, match="no_such_library"):
            registry.find("shop.broken.send")
        with pytest.raises(RuntimeError):
            registry.find("shop.wrong.send")


def test_another_backend_imports_nothing(package):
    package(tasks="raise RuntimeError\n")
    other = {"default": {"BACKEND": "somewhere.else.Backend"}}
    apps = ["django_leasequeue", "shop"]
    with override_settings(TASKS=other), override_settings(INSTALLED_APPS=apps):
        assert "shop.tasks" not in sys.modules


def test_a_task_and_a_job_type_of_one_name():
    from django.core.exceptions import ImproperlyConfigured

    from django_leasequeue import job

    with pytest.raises(ImproperlyConfigured, match=r"tests\.backend\.sample\.noop"):
        job(sample.noop.module_path)(lambda: None)


def test_modules_that_are_no_list():
    tasks = {"default": {**OURS["default"], "OPTIONS": {"MODULES": "shop.other"}}}
    with (
        pytest.raises(ImproperlyConfigured, match="list of dotted names"),
        override_settings(TASKS=tasks),
    ):
        discovery.discover()
