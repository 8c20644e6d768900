"""Settings of Sphinx for `make docs`; the pages are Markdown that reads as well on GitHub."""

from __future__ import annotations

import os
import sys
from pathlib import Path

_HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(_HERE / "_ext"), str(_HERE.parent), str(_HERE.parent / "testproject")]
os.environ["DJANGO_SETTINGS_MODULE"] = "testproject.settings"
os.environ.pop("DATABASE_URL", None)  # models are imported, no server is asked

import django  # noqa: E402 - after its settings

django.setup()

from django_leasequeue import __version__  # noqa: E402 - after django.setup

project = "django-leasequeue"
author = "django-leasequeue contributors"
project_copyright = author
release = version = __version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinxcontrib.mermaid", "comments"]
exclude_patterns = ["_build", "_ext"]

myst_heading_anchors = 4
myst_fence_as_directive = ["mermaid"]

# What docstrings put in backticks is code.
default_role = "code"
autodoc_typehints = "none"
autodoc_member_order = "bysource"

html_theme = "furo"
html_title = f"{project} {release}"
html_copy_source = False
