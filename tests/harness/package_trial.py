"""A stranger's first minutes: a new environment, a new project, one job through a real worker."""

from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path

from tests.harness.interpreters import Environment
from tests.harness.problems import Problem, say

_SETTINGS = """
INSTALLED_APPS += ["django_leasequeue", "orders"]
LANGUAGE_CODE = "de"
STATIC_ROOT = BASE_DIR / "collected"
"""
_JOBS = """
from pathlib import Path

from django_leasequeue import job


@job
def confirm(order: int) -> None:
    Path(f"confirmed-{order}").touch()
"""
_ENQUEUE = """
from orders.jobs import confirm
print("created", confirm.enqueue(order=7).created)
"""
_LOOK = """
import django_leasequeue
from django.contrib.auth.models import User
from django.test import Client
from django_leasequeue.models import Job
print("status", Job.objects.get().status, "version", django_leasequeue.__version__)
client = Client(SERVER_NAME="localhost")
client.force_login(User.objects.create_superuser("root", password="x"))
page = client.get("/admin/leasequeue/").content.decode()
print("in German", "Warteschlangen" in page)
"""


def install_and_run(environment: Environment, source: Path, wheel: Path) -> None:
    """Install `source` with the environment's Django, and run a job as its README says.

    Raises Problem with the command that did not do what it should, and what it said.
    """
    version = wheel.name.split("-")[1]
    with tempfile.TemporaryDirectory() as base:
        trial = _Trial(Path(base))
        say(f"trying {source.name} with Python {environment.python.minor} and {environment.django}")
        trial.run(environment.python.program, "-m", "venv", str(trial.venv))
        trial.python("-m", "pip", "install", "-q", str(source), environment.django)
        trial.python("-m", "pip", "check")
        trial.python("-m", "django", "startproject", "shop", ".")
        trial.write()
        trial.manage("check", expect="no issues")
        trial.manage("makemigrations", "--check", "--dry-run", expect="No changes")
        trial.manage("migrate", "--verbosity", "0")
        trial.manage("collectstatic", "--noinput", "--verbosity", "0")
        trial.manage("shell", "-c", _ENQUEUE, expect="created True")
        trial.manage("runworker", "--drain")
        said = f"status done version {version}\nin German True"
        trial.manage("shell", "-c", _LOOK, expect=said)
        trial.there("confirmed-7", "collected/leasequeue/live.css")


class _Trial:
    """A folder with an environment and a project in it, and no way to the checkout."""

    def __init__(self, base: Path) -> None:
        self.venv, self.project = base / "venv", base / "project"
        self.project.mkdir()
        self.environment = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("PYTHON", "DJANGO", "DATABASE", "LEASEQUEUE", "VIRTUAL_ENV"))
        }

    def write(self) -> None:
        """Add an app with one job to the project."""
        with (self.project / "shop" / "settings.py").open("a", encoding="utf-8") as settings:
            settings.write(_SETTINGS)
        orders = self.project / "orders"
        orders.mkdir()
        (orders / "__init__.py").touch()
        (orders / "jobs.py").write_text(_JOBS, encoding="utf-8")

    def manage(self, *arguments: str, expect: str = "") -> None:
        self.python("-W", "error", "manage.py", *arguments, expect=expect)

    def python(self, *arguments: str, expect: str = "") -> None:
        self.run(str(self.venv / "bin" / "python"), *arguments, expect=expect)

    def run(self, *command: str, expect: str = "") -> None:
        answer = subprocess.run(
            command,
            cwd=self.project,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=300,
            check=False,
        )
        if answer.returncode != 0 or expect not in answer.stdout:
            last = "\n".join(answer.stdout.splitlines()[-30:])
            wish = f", and was to say {expect!r}" if expect else ""
            raise Problem(f"{' '.join(command)} gave {answer.returncode}{wish}:\n{last}")

    def there(self, *names: str) -> None:
        for name in names:
            if not (self.project / name).exists():
                raise Problem(f"the trial project has no {name}")
