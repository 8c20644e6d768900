"""A page in the browser, as an operator has it: found by what it says."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from django.conf import settings
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY
from django.contrib.auth.models import User
from django.contrib.sessions.backends.db import SessionStore
from selenium.common.exceptions import NoSuchElementException, StaleElementReferenceException
from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement

from tests.waiting import wait_until

T = TypeVar("T")
ROOT = "/admin/leasequeue/"
_TEXT = "return document.body ? document.body.innerText : ''"
#: Where to keep pictures, if anywhere.
PICTURES = os.environ.get("LEASEQUEUE_SCREENSHOTS", "")


class Site:
    """The admin at `address`, in `driver`."""

    def __init__(self, driver: Chrome, address: str) -> None:
        self.driver = driver
        self._address = address

    def log_in(self, user: User) -> None:
        """Have the session of a user who has logged in."""
        session = SessionStore()
        session[SESSION_KEY] = str(user.pk)
        session[BACKEND_SESSION_KEY] = settings.AUTHENTICATION_BACKENDS[0]
        session[HASH_SESSION_KEY] = user.get_session_auth_hash()
        session.save()
        self.open("/admin/login/")
        cookie = {"name": settings.SESSION_COOKIE_NAME, "value": session.session_key, "path": "/"}
        self.driver.add_cookie(cookie)

    def open(self, path: str) -> None:
        """Go to a page of the site; below the app's own when it does not begin with a slash."""
        self.driver.get(self._address + (path if path.startswith("/") else ROOT + path))

    def one(self, selector: str) -> WebElement:
        """Return the element, waiting for it."""
        find = self.driver.find_element
        return self.wait(lambda: find(By.CSS_SELECTOR, selector), selector)

    def all(self, selector: str) -> list[WebElement]:
        """Return the elements that are there now."""
        return self.driver.find_elements(By.CSS_SELECTOR, selector)

    def follow(self, words: str) -> None:
        """Follow the link with these words."""
        self.driver.find_element(By.PARTIAL_LINK_TEXT, words).click()

    def fill(self, selector: str, text: str) -> None:
        """Put a text in the place of what a field holds."""
        field = self.one(selector)
        field.clear()
        field.send_keys(text)

    def reads(self, words: str) -> None:
        """Wait until the page says these words."""
        self.wait(lambda: words in self.text, f"not read: {words!r}")

    @property
    def text(self) -> str:
        """All that can be read."""
        return self.driver.find_element(By.TAG_NAME, "body").text

    def wait(self, found: Callable[[], T], message: str) -> T:
        """Return what `found` returns once it is true: a page may be on its way."""

        def look() -> T | None:
            try:
                return found()
            except (NoSuchElementException, StaleElementReferenceException):
                return None

        try:
            result: Any = wait_until(look, timeout=30, message=message)
        except AssertionError as error:
            error.add_note(f"{self.driver.current_url} says:\n{self.script(_TEXT)}")
            raise
        return result

    def script(self, source: str, *arguments: Any) -> Any:
        """Return what a script returns."""
        return self.driver.execute_script(source, *arguments)

    def picture(self, name: str) -> None:
        """Keep a picture of the page, if pictures are asked for."""
        if PICTURES:
            Path(PICTURES).mkdir(parents=True, exist_ok=True)
            self.driver.save_screenshot(str(Path(PICTURES) / f"{name}.png"))
