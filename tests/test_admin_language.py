"""The admin in another language: nothing that is said stays English, on any page."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.template.loader import render_to_string
from django.test import Client, override_settings
from django.utils import translation

from django_leasequeue import add_schedule, enqueue
from django_leasequeue.models import BulkRun
from django_leasequeue.registry import registry
from tests.admin_pages import FINGERPRINT, addresses, arrange
from tests.page_words import words_of
from tests.test_catalogues import compiled

ROOT = "/admin/leasequeue/"
_INNERMOST = re.compile(r"⟦[^⟦⟧]*⟧")
_DATA = {
    # Words that Django does not translate: of its icons.
    *("True", "False", "Search"),
    # Values of code, which stand for themselves, and names out of the project.
    *("all", "latest", "none", "default", "report.generate", FINGERPRINT, "UTC"),
    *("Reports", "Generated reports", "Orders"),
}
#: Keys, and names of rows in Django's log.
_KEPT = re.compile(r"[0-9a-f]{64}|(requeue|cancel) #\d+")
#: What that log keeps as it was written, on the pages that show it.
_LOGGED = re.compile(r"(.* 0: )?[A-Z][a-z ]+: \d")
_ACTIONS = {
    "schedule/": ("disable", "enable", "run_now"),
    "job/": ("pause_queues", "cancel_jobs", "requeue_jobs"),
}
#: None of these is a German word.
_ENGLISH = set(
    re.findall(r"\w+", "the of is are were and to for there be from has have it by with this that")
)


@pytest.fixture
def operator(queue_db) -> Client:
    client = Client()
    client.force_login(User.objects.create_superuser("0", password="x"))
    return client


@pytest.fixture
def _marked(monkeypatch) -> None:
    """Put brackets around whatever is translated, by Django as well."""

    def one(message: str) -> str:
        return f"⟦{message}⟧"

    def several(singular: str, plural: str, number: int) -> str:
        return one(singular if number == 1 else plural)

    backend = vars(translation)["_trans"]
    monkeypatch.setattr(backend, "gettext", one, raising=False)
    monkeypatch.setattr(backend, "ngettext", several, raising=False)
    monkeypatch.setattr(backend, "pgettext", lambda context, text: one(text), raising=False)
    monkeypatch.setattr(
        backend, "npgettext", lambda context, *arguments: several(*arguments), raising=False
    )


@pytest.fixture
def _german() -> Iterator[None]:
    middleware = [*settings.MIDDLEWARE, "django.middleware.locale.LocaleMiddleware"]
    with override_settings(MIDDLEWARE=middleware), translation.override("de"):
        yield


def unmarked(name: str, page: str) -> list[str]:
    """Return the texts of a page that hold words outside of all brackets."""
    found = []
    for text in words_of(page):
        rest = text
        while _INNERMOST.search(rest):
            rest = _INNERMOST.sub(" ", rest)
        if "history" in name or "bulkrun" in name:
            rest = _LOGGED.sub("", rest)
        rest = _KEPT.sub("", rest)
        if set(re.findall(r"[^\W\d_]{2,}", rest)) - _DATA and text not in _DATA:
            found.append(text)
    return found


def pages(client: Client, **headers: str) -> Iterator[tuple[str, str]]:
    """Yield the address and the HTML of each page, empty, and after all was done that can be."""
    client.defaults.update(headers)
    for name in ("", "job/", "deadgroup/", "queue/", "worker/", "schedule/", "bulkrun/"):
        yield f"empty {name}", client.get(f"{ROOT}{name}").content.decode()
    job = arrange("1", payload={"1": 1})
    BulkRun.objects.update(by="0", note="", filter={"ids": [1], "statuses": ["dead"]})
    asked = addresses(ROOT)
    schedule = add_schedule("3", job_type="4", every=60)
    for values in ({}, {"delay": 60}):
        enqueue("2", {}, **values)
    for address in asked:
        answer = address.ask(client, reason="5", hours=1, note="6", most=1)
        html = answer.content.decode()
        if answer.status_code == 200:
            yield address.url, html
    more = ["", "schedule/", "schedule/add/", f"schedule/{schedule.pk}/change/", "bulkrun/"]
    more += [f"bulkrun/{BulkRun.objects.latest('pk').pk}/change/", "job/"]
    for url in ["/admin/", *(f"{ROOT}{name}" for name in more)]:
        answer = client.get(url)
        assert answer.status_code == 200
        yield url, answer.content.decode()
    for name, actions in _ACTIONS.items():
        for action in actions:
            ticked = {"action": action, "_selected_action": [schedule.pk, job], "reason": "5"}
            answer = client.post(f"{ROOT}{name}", ticked)
            if answer.status_code == 200:
                yield f"{name}: {action}", answer.content.decode()
    yield "outage", render_to_string("admin/leasequeue/outage.html", {"why": "1"})


@pytest.mark.usefixtures("_marked")
def test_whatever_a_page_says_is_marked_for_translation(operator):
    found = {
        (text, name)
        for name, html in pages(operator)
        for text in unmarked(name, html)
        if registry.get(text) is None  # names of job types, in a filter
    }
    assert sorted(found) == []


@pytest.mark.usefixtures("_german")
def test_no_page_says_anything_in_english_to_a_german(operator):
    german = {text.lower() for text in compiled("de").values()}
    own = {(key[0] if isinstance(key, tuple) else key).lower() for key in compiled("de")} - german
    found = set()
    for name, html in pages(operator, HTTP_ACCEPT_LANGUAGE="de"):
        assert name == "outage" or '<html lang="de"' in html or "<html" not in html
        for text in words_of(html):
            if registry.get(text) is not None:
                continue
            # A random key may have "be" in it, between two digits.
            words = set(re.findall(r"[^\W\d_]+", _KEPT.sub("", text).lower()))
            if text.lower().rstrip(":") in own - {"none"} or words & _ENGLISH:
                found.add((text, name))
    assert sorted(found) == []


@pytest.mark.usefixtures("_german")
def test_the_dashboard_and_the_dead_letters_speak_german(operator):
    shown = dict(pages(operator, HTTP_ACCEPT_LANGUAGE="de"))
    dashboard = " ".join(words_of(shown[ROOT]))
    assert "Hier werden Sie gebraucht" in dashboard
    assert "1 Warteschlange ist pausiert." in dashboard
    assert "1 toter Job" in " ".join(words_of(shown[f"{ROOT}deadgroup/"]))
