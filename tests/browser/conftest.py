"""Fixtures: a server in a process of its own, a browser, and an operator who has logged in."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

import pytest
from django.contrib.auth.models import User

from tests.fixtures.processes import MANAGE
from tests.harness.tied import tied
from tests.process.conftest import gate, process_environment  # noqa: F401  (fixtures)
from tests.waiting import wait_until

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.only_on("mariadb"))


@pytest.fixture(scope="session", autouse=True)
def _installed(db_kind: str) -> None:
    """Skip without a browser, visibly; where CI=true, fail."""
    if db_kind != "mariadb":
        # The marks are asked test by test: by then the session's browser would have started.
        pytest.skip("is about mariadb")
    programs = {"chromium": "chromium", "chromedriver": "chromium-driver"}
    absent = [package for program, package in programs.items() if not shutil.which(program)]
    absent += [] if find_spec("selenium") else ["selenium"]
    lacking = ", ".join(absent)
    if lacking and os.environ.get("CI", "").lower() in {"true", "1"}:
        pytest.fail(f"the browser tests need {lacking}", pytrace=False)
    if lacking:
        pytest.skip(f"needs {lacking}")


@pytest.fixture(scope="session")
def browser(_installed: None):
    """One browser for all tests: its start takes longer than most of them."""
    from tests.browser.chromium import chromium

    with chromium() as driver:
        yield driver


@pytest.fixture
def address(process_environment: dict[str, str], tmp_path: Path) -> Iterator[str]:  # noqa: F811
    """Where `runserver` serves the admin on the test database, under the strict policy."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    command = [sys.executable, str(MANAGE), "runserver", "--noreload", "--insecure", str(port)]
    environment = {**process_environment, "DJANGO_SETTINGS_MODULE": "tests.browser.settings"}
    log = tmp_path / "server.log"
    with log.open("wb") as output:
        server = subprocess.Popen(tied(command), env=environment, stdout=output, stderr=output)
    where = f"http://127.0.0.1:{port}"
    try:
        wait_until(lambda: _answers(where, server), timeout=30, message="no server")
        yield where
    finally:
        server.terminate()
        server.wait(30)
    assert "Traceback" not in log.read_text()


def _answers(where: str, server: subprocess.Popen[bytes]) -> bool:
    assert server.poll() is None, "the server has ended"
    with suppress(URLError, OSError), urlopen(f"{where}/admin/login/") as answer:
        return answer.status == 200
    return False


@pytest.fixture
def visit(queue_db, address: str) -> Callable:
    """A factory: `visit(driver)` is the site in that browser, with an operator logged in."""
    from tests.browser.site import Site

    operator = User.objects.create_superuser("root", password="x")

    def start(driver) -> Site:
        site = Site(driver, address)
        site.log_in(operator)
        return site

    return start


@pytest.fixture
def site(visit: Callable, browser) -> Iterator:
    """The site, with an operator; at the end no page may have had an error or a refused part."""
    browser.delete_all_cookies()
    browser.get_log("browser")
    found = visit(browser)
    yield found
    found.open("/admin/jsi18n/")  # no page of ours asks for anything any more
    severe = [line for line in browser.get_log("browser") if line["level"] == "SEVERE"]
    assert [line for line in severe if "/favicon.ico" not in line["message"]] == []
