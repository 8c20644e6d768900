"""Error text that every server stores: replaced where it must be, cut where it is too long."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from django_leasequeue.codec import ERROR_TEXT_LENGTH, clean_text


@given(text=st.text(max_size=300))
def test_any_text_becomes_storable(text):
    clean = clean_text(text, 100)
    assert len(clean) <= 100
    assert "\0" not in clean
    clean.encode("utf-8")


@given(text=st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")))
def test_storable_text_stays_as_it_is(text):
    assert clean_text(text) == text


@pytest.mark.parametrize(
    ("text", "clean"), [("a\0b", "a\ufffdb"), ("\ud800", "\ufffd"), ("x\udfff\0", "x\ufffd\ufffd")]
)
def test_what_cannot_be_stored_is_replaced(text, clean):
    assert clean_text(text) == clean


def test_it_is_cut_between_characters():
    assert clean_text("😀" * 20_000) == "😀" * ERROR_TEXT_LENGTH == "😀" * 4000
