"""A project as `startproject` makes it, with a task: INSTALLED_APPS, TASKS and runworker do it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import django
import pytest

ROOT = Path(__file__).resolve().parents[2]

SETTINGS = """
INSTALLED_APPS += ["django_leasequeue", "shop"]
TASKS = {"default": {"BACKEND": "django_leasequeue.backend.LeaseQueueBackend"}}
"""
TASKS = """
from {framework} import task


@task
def greet(name):
    with open("greetings.txt", "a") as out:
        out.write(f"hello {{name}}")
    return len(name)
"""
ENQUEUE = "from shop.tasks import greet; print(greet.enqueue('world').id)"
RESULT = "from shop.tasks import greet; print(greet.get_result('1').return_value)"


@pytest.mark.only_on("sqlite")
def test_a_new_project_runs_its_task(tmp_path):
    backport = django.VERSION < (6, 0)

    def manage(*words):
        environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT)}
        return subprocess.run(
            [sys.executable, "-W", "error", *words],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
        ).stdout

    manage("-m", "django", "startproject", "site1", ".")
    manage("manage.py", "startapp", "shop")
    settings = tmp_path / "site1" / "settings.py"
    extra = SETTINGS + ("INSTALLED_APPS += ['django_tasks']\n" if backport else "")
    settings.write_text(settings.read_text() + extra)
    framework = "django_tasks" if backport else "django.tasks"
    (tmp_path / "shop" / "tasks.py").write_text(TASKS.format(framework=framework))

    manage("manage.py", "migrate", "--verbosity", "0")
    assert manage("manage.py", "shell", "-c", ENQUEUE).split()[-1] == "1"
    manage("manage.py", "runworker", "--drain")
    assert (tmp_path / "greetings.txt").read_text() == "hello world"
    assert manage("manage.py", "shell", "-c", RESULT).split()[-1] == "5"
