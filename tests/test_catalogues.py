"""The catalogues: complete, compiled as they are written, true to the texts they translate."""

from __future__ import annotations

import ast
import gettext
import re
from functools import cache
from pathlib import Path
from typing import Any

import django
import pytest

from django_leasequeue.statuses import Status
from tests import messages
from tests.house_rules import PACKAGE
from tests.messages import LANGUAGES, LOCALE, Message

#: As gettext keeps a text that has a context.
_CONTEXT = "\x04"
_LINE = re.compile(r'^(?:(msgctxt|msgid|msgid_plural|msgstr(?:\[\d\])?) )?(".*")$')
_PLACE = re.compile(r"%(?:\(\w+\))?[a-z]")
pytestmark = pytest.mark.only_on("sqlite")  # no database has a part in it
_DJANGO = Path(str(django.__file__)).parent
_OF_DJANGO = ("conf", "contrib/admin", "contrib/auth")


@cache
def texts() -> set[Message]:
    return set(messages.extract())


def read(path: Path) -> dict[Any, str]:
    """Return a compiled catalogue without its header: by text, or by text and form."""
    with path.open("rb") as file:
        found: dict[Any, str] = dict(vars(gettext.GNUTranslations(file))["_catalog"])
    return {key: text for key, text in found.items() if key != ""}


@cache
def compiled(language: str) -> dict[Any, str]:
    return read(LOCALE / language / "LC_MESSAGES" / "django.mo")


def source(language: str) -> str:
    return (LOCALE / language / "LC_MESSAGES" / "django.po").read_text(encoding="utf-8")


def written(language: str) -> dict[Any, str]:
    """Return a catalogue as it is written, with the keys of a compiled one."""
    found: dict[Any, str] = {}
    for entry in source(language).split("\n\n")[1:]:
        parts: dict[str, str] = {}
        last = ""
        for line in entry.splitlines():
            if match := _LINE.match(line):
                last = match[1] or last
                parts[last] = parts.get(last, "") + ast.literal_eval(match[2])
        if not parts.get("msgid"):
            continue
        key = parts.get("msgctxt", "") + _CONTEXT * ("msgctxt" in parts) + parts["msgid"]
        for name, text in parts.items():
            if name == "msgstr":
                found[key] = text
            elif name.startswith("msgstr["):
                found[key, int(name[7:-1])] = text
    return found


def forms(language: str, message: Message) -> list[str]:
    """Return a text's translation, or those of all its forms."""
    key = f"{message.context}{_CONTEXT}{message.text}" if message.context else message.text
    found = compiled(language)
    if not message.plural:
        return [found[key]]
    return [text for one, text in found.items() if isinstance(one, tuple) and one[0] == key]


def test_modules_and_templates_are_read(tmp_path):
    module, template = tmp_path / "module.py", tmp_path / "template.html"
    module.write_text(
        "a = _('one')\nb = gettext(\n    'two '\n    'halves'\n)\nc = pgettext('here', 'three')\n"
        "d = ngettext('%d four', '%d fours', n)\ne = at.gettext_lazy('five')\nf = _(six)\n"
    )
    assert set(messages.in_file(module)) == {
        *(Message("", "one"), Message("", "two halves"), Message("here", "three")),
        *(Message("", "%d four", "%d fours"), Message("", "five")),
    }
    template.write_text(
        "{% load i18n %}{% translate 'one' %}{% translate \"it's two\" as three %}"
        "{% blocktranslate with a=b %}at {{ a }}{% endblocktranslate %}{{ x|default:_('(four)') }}"
        "{% blocktranslate count n=n %}{{ n }} five{% plural %}{{ n }} fives{% endblocktranslate %}"
    )
    assert set(messages.in_file(template)) == {
        *(Message("", "one"), Message("", "it's two"), Message("", "at %(a)s")),
        *(Message("", "(four)"), Message("", "%(n)s five", "%(n)s fives")),
    }


def test_what_is_marked_is_written_out():
    """A text that is put together is in no catalogue; the words for a status are in display.py."""
    found = {
        (path.name, ast.unparse(node.args[0]))
        for path in PACKAGE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call)
        and messages.name_of(node.func) in messages.MARKS
        and not isinstance(node.args[0], ast.Constant)
    }
    assert found == {("models.py", "status.value")}
    assert {Message("", status.value) for status in Status} <= texts()


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_text_has_its_translation_and_nothing_else_has(language):
    """`make messages` adds what is missing, to be translated by hand, and removes the rest."""
    keys = {key[0] if isinstance(key, tuple) else key for key in compiled(language)}
    wanted = {f"{one.context}{_CONTEXT}{one.text}" if one.context else one.text for one in texts()}
    assert keys == wanted
    assert all(text.strip() for text in compiled(language).values())


@pytest.mark.parametrize("language", LANGUAGES)
def test_it_is_compiled_as_it_is_written(language):
    assert written(language) == compiled(language)
    assert "fuzzy" not in source(language)


@pytest.mark.parametrize("language", LANGUAGES)
def test_places_and_ends_are_those_of_the_text(language):
    wrong = []
    for message in texts():
        for text in forms(language, message):
            places = [sorted(_PLACE.findall(one)) for one in (message.text, text)]
            ends = [one[-1] if one[-1] in ".:…" else "" for one in (message.text, text)]
            if places[0] != places[1] or ends[0] != ends[1]:
                wrong.append(text)
    assert wrong == []


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_text_has_all_its_plural_forms(language):
    count = re.search(r"nplurals=(\d)", source(language))
    assert count
    for message in texts():
        if message.plural:
            assert len(forms(language, message)) == int(count[1]), message


@pytest.mark.parametrize("language", LANGUAGES)
def test_words_that_django_translates_too_are_translated_as_there(language):
    """The catalogues of all apps are one: another word would stand on Django's own pages."""
    own = compiled(language)
    shared = 0
    for folder in _OF_DJANGO:
        path = _DJANGO / folder / "locale" / language / "LC_MESSAGES" / "django.mo"
        for key, text in read(path).items():
            if key in own:
                assert own[key] == text
                shared += 1
    assert shared


def test_french_has_its_spaces():
    for text in compiled("fr").values():
        assert not re.search(r"(?<![\u00a0\d@])[:;!?](?=\s|$)", text), text
        assert "'" not in text
