"""Lines that end with a comment, which the build replaces; GitHub shows what is before it.

`<!-- pages -->`          a hidden table of contents for each section of the index
`<!-- autodoc: a, b -->`  the docstrings of these public names
`<!-- changelog -->`      CHANGELOG.md without its title
"""

from __future__ import annotations

import inspect
import logging
import re
from enum import Enum
from pathlib import Path

from django.core.exceptions import ImproperlyConfigured
from sphinx.application import Sphinx

import django_leasequeue

_ROOT = Path(__file__).resolve().parents[2]
_COMMENT = re.compile(
    r"^.*<!-- (?P<what>pages|changelog|autodoc)(: (?P<names>.+))? -->$", re.MULTILINE
)
#: What these do is for Python to say: their methods need no words here.
_PRESCRIBED = (BaseException, logging.Filter, logging.Formatter)
_LINK = re.compile(r"\]\(([\w./-]+)\.md\)")


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the replacement."""
    app.connect("source-read", _replace)
    return {"parallel_read_safe": True}


def _replace(app: Sphinx, name: str, source: list[str]) -> None:
    page = source[0]
    source[0] = _COMMENT.sub(lambda found: _in_place_of(found["what"], found["names"], page), page)


def _in_place_of(what: str, names: str | None, page: str) -> str:
    if what == "pages":
        return _contents(page)
    return _changelog() if what == "changelog" else _autodoc(names or "")


def _contents(index: str) -> str:
    """Return a toctree for each section of the index that links to pages."""
    trees = []
    for section in re.split(r"^## ", index, flags=re.MULTILINE)[1:]:
        caption = section.splitlines()[0]
        rows = [line for line in section.splitlines() if line.startswith("| [")]
        pages = [found[1] for line in rows if (found := _LINK.search(line))]
        if pages:
            lines = [":hidden:", f":caption: {caption}", "", *pages]
            trees.append("\n".join(["```{toctree}", *lines, "```"]))
    return "\n\n".join(trees)


def _autodoc(names: str) -> str:
    blocks = [_directive(name) for name in names.split(", ")]
    return "\n\n".join(["```{eval-rst}", *blocks, "```"])


def _directive(path: str) -> str:
    module, _, name = path.rpartition(".")
    try:
        home = django_leasequeue if not module else __import__(module, fromlist=[name])
    except ImproperlyConfigured as error:  # django.tasks, on a Django that has none
        return f"``{path}``: {error}"
    thing = getattr(home, name)
    dotted = f"{home.__name__}.{name}"
    if not inspect.isclass(thing):
        value = f".. autodata:: {dotted}\n   :no-value:"
        return f".. autofunction:: {dotted}" if callable(thing) else value
    members = "" if issubclass(thing, _PRESCRIBED) else f"\n   :members:{_aliases(thing)}"
    words = "\n   :undoc-members:" if issubclass(thing, Enum) else ""
    return f".. autoclass:: {dotted}{members}{words}"


def _aliases(cls: type) -> str:
    """Return the option that leaves out attributes which are classes: described elsewhere."""
    names = [name for name, value in vars(cls).items() if inspect.isclass(value)]
    return f"\n   :exclude-members: {', '.join(names)}" if names else ""


def _changelog() -> str:
    text = (_ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    return text.partition("\n")[2].replace("](docs/", "](")
