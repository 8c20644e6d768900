"""Debian's Chromium, driven by its own driver: nothing is downloaded, nothing stays behind."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from tempfile import TemporaryDirectory
from typing import Any

from selenium import webdriver
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service

#: Collects what the policy refuses, from before the page's own first script.
_LISTENER = """
window.refusedByPolicy = [];
document.addEventListener("securitypolicyviolation", (event) => {
    window.refusedByPolicy.push(event.violatedDirective + " " + event.blockedURI);
});
"""


@contextmanager
def chromium(*, scripts: bool = True) -> Iterator[webdriver.Chrome]:
    """Run a headless browser for the block, without scripts if told so."""
    with TemporaryDirectory(prefix="leasequeue-browser-") as profile:
        driver = webdriver.Chrome(
            options=_options(profile, scripts=scripts),
            service=Service(shutil.which("chromedriver")),
        )
        try:
            driver.set_page_load_timeout(30)
            driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": _LISTENER})
            yield driver
        finally:
            driver.quit()


def _options(profile: str, *, scripts: bool) -> Options:
    options = Options()
    options.binary_location = shutil.which("chromium") or ""
    for argument in (
        "--headless=new",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--disable-background-networking",
        "--no-first-run",
        "--window-size=1200,900",
        f"--user-data-dir={profile}",
    ):
        options.add_argument(argument)
    if os.geteuid() == 0:
        options.add_argument("--no-sandbox")  # Chromium will not sandbox for root
    if not scripts:
        values = {"profile.managed_default_content_settings.javascript": 2}
        options.add_experimental_option("prefs", values)
    logs: dict[str, Any] = {"browser": "ALL"}
    options.set_capability("goog:loggingPrefs", logs)
    return options
