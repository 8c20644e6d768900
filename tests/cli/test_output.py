"""What is written: nothing that a terminal would obey, aligned columns, JSON, progress."""

from __future__ import annotations

import io
import json
from datetime import UTC, datetime, timedelta, timezone

import pytest
from django.core.management.base import OutputWrapper

from django_leasequeue.cli import output
from django_leasequeue.cli.output import Output, moment, printable


class Terminal(io.StringIO):
    """Text that says it is shown."""

    def isatty(self):
        return True


@pytest.fixture
def streams():
    return io.StringIO(), io.StringIO()


@pytest.fixture
def out(streams):
    return Output(*map(OutputWrapper, streams))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain text, Zoë 日本", "plain text, Zoë 日本"),
        ("\x1b[2J", r"\x1b[2J"),
        ("\x9b2J\x7f", r"\x9b2J\x7f"),
        ("a\r\nb\tc", r"a\r\nb\tc"),
        ("\u202e\u2066\ufeff\u2028", r"\u202e\u2066\ufeff\u2028"),
        ("\ud800", r"\ud800"),
    ],
)
def test_what_a_terminal_could_obey_is_an_escape(out, streams, text, shown):
    assert printable(text) == shown
    out.line(text)
    out.warn(text)
    assert [stream.getvalue() for stream in streams] == [shown + "\n"] * 2


def test_what_the_stream_cannot_encode_is_an_escape():
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding="ascii")
    Output(OutputWrapper(stream), OutputWrapper(stream)).line("Zoë")
    stream.flush()
    assert raw.getvalue() == b"Zo\\xeb\n"


def test_columns_are_aligned(out, streams):
    out.table(("name", "n", "more"), [("a", 5, None), ("日本", 123, ""), ("b\x1b", 0, "x  ")])
    assert streams[0].getvalue().splitlines() == [
        "name     n  more",
        "a        5  -",
        "日本   123  -",
        r"b\x1b    0  x",
    ]


def test_a_table_without_rows_is_its_titles(out, streams):
    out.table(("a", "b"), [])
    assert streams[0].getvalue() == "a  b\n"


def test_json_is_one_ascii_line(out, streams):
    value = {
        "name": "Zoë\x1b\u2028",
        "at": datetime(2042, 1, 1, tzinfo=timezone(timedelta(hours=2))),
    }
    out.json(value)
    text = streams[0].getvalue()
    assert text.isascii() and text.count("\n") == 1
    assert json.loads(text) == {"name": "Zoë\x1b\u2028", "at": "2041-12-31T22:00:00+00:00"}


@pytest.mark.parametrize("value", [float("nan"), {1, 2}, b"bytes"])
def test_what_is_no_json_is_an_error(out, streams, value):
    with pytest.raises((TypeError, ValueError)):
        out.json({"value": value})
    assert streams[0].getvalue() == ""


def test_times_are_utc():
    assert moment(datetime(2042, 1, 1, 0, 30, 5, 9, tzinfo=UTC)) == "2042-01-01T00:30:05Z"
    assert moment(None) == "-"


def test_progress_is_lines_where_nobody_watches(out, streams, monkeypatch):
    monkeypatch.setattr(output, "_SECONDS_BETWEEN_LINES", 0.0)
    with out.progress(3, "jobs\x1b") as progress:
        progress.advance()
        progress.advance(2)
    assert streams[0].getvalue() == ""
    assert streams[1].getvalue() == "".join(f"jobs\\x1b: {n}/3\n" for n in (1, 3, 3))


def test_progress_says_little(out, streams):
    with out.progress(None, "jobs") as progress:
        for _ in range(1000):
            progress.advance()
    assert streams[1].getvalue() == "jobs: 1000\n"


def test_progress_is_a_bar_on_a_terminal(streams):
    pytest.importorskip("tqdm", reason="a bar needs the extra cli")
    terminal = Terminal()
    out = Output(OutputWrapper(streams[0]), OutputWrapper(terminal))
    with out.progress(2, "jobs\x1b") as progress:
        progress.advance(2)
    assert "100%" in terminal.getvalue()
    assert "\x1b" not in terminal.getvalue()


def test_progress_needs_no_tqdm(streams, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "tqdm", None)
    terminal = Terminal()
    out = Output(OutputWrapper(streams[0]), OutputWrapper(terminal))
    with out.progress(2, "jobs") as progress:
        progress.advance(2)
    assert terminal.getvalue() == "jobs: 2/2\n"
