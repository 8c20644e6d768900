"""The texts of the package that are translated, as they are marked in its source.

`make messages` runs this: it puts new texts into the catalogues, takes out what is gone, and
compiles them. What is new has to be translated by hand; tests/test_catalogues.py asks for it.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from django.utils.translation.template import templatize

from tests.house_rules import PACKAGE, ROOT

LOCALE = PACKAGE / "locale"
LANGUAGES = ("de", "fr")

#: Of each function that marks a text: where its context and its texts are among the arguments.
MARKS: dict[str, tuple[int | None, int]] = {
    "_": (None, 1),
    "gettext": (None, 1),
    "gettext_lazy": (None, 1),
    "gettext_noop": (None, 1),
    "ngettext": (None, 2),
    "ngettext_lazy": (None, 2),
    "pgettext": (0, 1),
    "pgettext_lazy": (0, 1),
    "npgettext": (0, 2),
    "npgettext_lazy": (0, 2),
}
_TEXT = r"u?(?:'(?:\\.|[^'\\])*'|\"(?:\\.|[^\"\\])*\")"
_CALL = re.compile(rf"\b(_|n?p?gettext)\(\s*({_TEXT}(?:\s*,\s*{_TEXT})*)")


class Message(NamedTuple):
    """A marked text: its context, or "", the text, and its plural, or ""."""

    context: str
    text: str
    plural: str = ""


def extract() -> dict[Message, list[str]]:
    """Return each marked text of the package, and the files that have it."""
    found: dict[Message, list[str]] = {}
    for path in sorted([*PACKAGE.rglob("*.py"), *PACKAGE.rglob("*.html")]):
        for message in in_file(path):
            places = found.setdefault(message, [])
            name = path.relative_to(ROOT).as_posix()
            places += [] if name in places else [name]
    return found


def in_file(path: Path) -> Iterator[Message]:
    """Yield the marked texts of a module or a template."""
    source = path.read_text(encoding="utf-8")
    if path.suffix == ".html":
        for name, texts in _CALL.findall(templatize(source, origin=str(path))):
            yield _message(name, [ast.literal_eval(text) for text in re.findall(_TEXT, texts)])
        return
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and (name := name_of(node.func)) in MARKS:
            arguments = [item.value if isinstance(item, ast.Constant) else "" for item in node.args]
            if arguments and isinstance(arguments[0], str) and arguments[0]:
                yield _message(name, [str(one) for one in arguments])


def name_of(function: ast.expr) -> str:
    """Return what a function is called where it is called, "" for what has no name."""
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""


def _message(name: str, arguments: list[str]) -> Message:
    context, count = MARKS[name]
    texts = arguments[:count] if context is None else arguments[1 : count + 1]
    return Message("" if context is None else arguments[0], *texts)


def renew(language: str) -> int:
    """Bring a catalogue up to date, compile it, and return how many texts have no translation."""
    from babel.messages import Catalog, mofile, pofile  # for this alone, and only where it is run

    folder = LOCALE / language / "LC_MESSAGES"
    with (folder / "django.po").open("rb") as file:
        old = pofile.read_po(file, locale=language)
    new = Catalog(
        locale=language,
        header_comment=old.header_comment,
        project="django-leasequeue",
        fuzzy=False,
        charset="utf-8",
    )
    new.mime_headers = old.mime_headers
    for message, places in sorted(extract().items()):
        ids = (message.text, message.plural) if message.plural else message.text
        before = old.get(message.text, message.context or None)
        string = before.string if before and not before.fuzzy and before.id == ids else None
        new.add(
            ids,
            string,
            locations=[(place, None) for place in places],
            user_comments=before.user_comments if before else (),
            context=message.context or None,
        )
    with (folder / "django.po").open("wb") as file:
        pofile.write_po(file, new, width=0, sort_output=True, include_lineno=False)
    with (folder / "django.mo").open("wb") as file:
        mofile.write_mo(file, new)
    return sum(1 for one in new if one.id and not all(_strings(one.string)))


def _strings(given: str | tuple[str, ...] | list[str] | None) -> tuple[str, ...]:
    return (given or "",) if isinstance(given, str | None) else tuple(given)


if __name__ == "__main__":
    missing = {language: renew(language) for language in LANGUAGES}
    for language, count in missing.items():
        sys.stdout.write(f"{language}: {count} to translate\n")
    sys.exit(any(missing.values()))
