"""What a page says to whoever reads it, or has it read: its texts, without code and data."""

from __future__ import annotations

import re
from html.parser import HTMLParser

__all__ = ["words_of"]

_SPOKEN = ("alt", "aria-label", "placeholder", "title")
#: What a script says when it is time.
_SAID_LATER = ("data-away", "data-leasequeue-off", "data-leasequeue-on", "data-refused")
_SILENT = {"script", "style", "pre", "code"}


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self._silent = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._silent += tag in _SILENT
        values = dict(attrs)
        names = [*_SPOKEN, *_SAID_LATER]
        if tag == "input" and values.get("type") in {"submit", "button", "reset"}:
            names.append("value")
        self.found += [value for name in names if (value := values.get(name))]

    def handle_endtag(self, tag: str) -> None:
        self._silent -= tag in _SILENT

    def handle_data(self, data: str) -> None:
        if not self._silent:
            self.found.append(data)


def words_of(page: str) -> list[str]:
    """Return each text of an HTML page, and of those attributes that are read aloud."""
    reader = _Reader()
    reader.feed(page)
    texts = (re.sub(r"\s+", " ", text).strip() for text in reader.found)
    return [text for text in texts if text]
