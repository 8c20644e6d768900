"""What the package never does: run text as code, unpickle what is not its own, import by a row."""

from __future__ import annotations

import ast
import io
import pickle
import socket
import struct
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from django_leasequeue.outcomes import End, Outcome
from django_leasequeue.runtime.channel import Channel
from tests import house_rules
from tests.house_rules import PACKAGE, module_name

SOURCES = list(house_rules.sources())

#: Runs text as code or as a command, or reads what can.
NEVER = {
    *("eval", "exec", "compile", "__import__", "os.system", "os.popen", "os.execv", "os.spawnl"),
    *("pty.spawn", "runpy.run_path", "runpy.run_module", "code.interact", "input"),
    *("marshal.loads", "marshal.load", "shelve.open", "dill.loads", "cloudpickle.loads"),
    *("yaml.load", "yaml.unsafe_load", "jsonpickle.decode", "tempfile.mktemp"),
    *("pickle.load", "pickle.loads", "mark_safe", "SafeString", "hashlib.md5", "hashlib.sha1"),
}
#: Modules that nothing imports but these files, and why they may.
ONLY_IN = {
    # Control and its children, over a socket pair that they inherit; the reader builds no class
    # but this package's (tested below).
    "pickle": {"runtime/channel.py"},
    # `--reload` starts the command line that it was started with.
    "subprocess": {"runtime/reload.py"},
    # Literals of a django-q2 row: values, never calls or names.
    "ast": {"importers/django_q2.py"},
    "marshal": set(),
    "shelve": set(),
    "dill": set(),
    "ctypes": {"runtime/interrupts.py", "runtime/orphans.py"},
    "code": set(),
    "codeop": set(),
    "runpy": set(),
    "imp": set(),
    "xmlrpc": set(),
}
#: Where a name is imported by its text, and whose text it is.
BY_NAME = {
    "__init__.py": "its own table of public names",
    "core/listening.py": "a literal: is psycopg there?",
    "core/dialect.py": "the project's driver, and literals below it",
    "cli/table.py": "its own table of sub-commands",
    "conf.py": "the project's settings",
    "manifest.py": "the project's manifest",
    "middleware/chain.py": "the project's settings",
    "backend/discovery.py": "the project's settings; a row's, if it is signed",
}
IMPORTERS = {"import_module", "import_string", "__import__", "find_spec", "spec_from_file_location"}


def parsed() -> Iterator[tuple[str, ast.Module]]:
    for path in SOURCES:
        yield str(path.relative_to(PACKAGE)), ast.parse(path.read_text(encoding="utf-8"))


def called(node: ast.Call) -> str:
    return ast.unparse(node.func)


def calls_never(tree: ast.Module) -> list[str]:
    """Return the calls in a module that none may make, by their names or the last part of it."""
    names = [called(node) for node in ast.walk(tree) if isinstance(node, ast.Call)]
    return [name for name in names if name in NEVER]


def imported(tree: ast.Module) -> set[str]:
    """Return the top names of the modules that a module imports."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.add(node.module.partition(".")[0])
    return found


def imports_by_name(tree: ast.Module) -> bool:
    names = {called(node) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    return bool({name.rpartition(".")[2] for name in names} & IMPORTERS)


def test_nothing_runs_text() -> None:
    assert {place: found for place, tree in parsed() if (found := calls_never(tree))} == {}


def test_dangerous_modules_are_where_they_are_known() -> None:
    found = {
        name: {place for place, tree in parsed() if name in imported(tree)} for name in ONLY_IN
    }
    assert found == ONLY_IN


def test_names_are_imported_where_it_is_known_whose_they_are() -> None:
    assert {place for place, tree in parsed() if imports_by_name(tree)} == set(BY_NAME)


def shells(tree: ast.Module) -> list[str]:
    words = [
        keyword
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        for keyword in node.keywords
        if keyword.arg == "shell"
    ]
    return [ast.unparse(word.value) for word in words]


def test_nothing_uses_a_shell() -> None:
    assert [place for place, tree in parsed() if shells(tree)] == []


def unsafe_templates() -> list[str]:
    templates = (PACKAGE / "templates").rglob("*.html")
    words = ("|safe", "autoescape off", "mark_safe", "|safeseq")
    return [str(path) for path in templates if any(word in path.read_text() for word in words)]


def test_no_template_turns_escaping_off() -> None:
    assert unsafe_templates() == []


def html_of(node: ast.Call) -> list[ast.expr]:
    """Return the arguments of a call that are taken for HTML."""
    return node.args[: {"format_html": 1, "format_html_join": 2}.get(called(node), 0)]


def is_text_of_ours(node: ast.expr) -> bool:
    """A literal, or literals put together without a name in between."""
    return not any(isinstance(part, ast.Name | ast.Attribute) for part in ast.walk(node))


def test_format_html_gets_literals() -> None:
    """It escapes what is put in, and takes what it is put into for HTML."""
    wrong = {
        f"{place}: {ast.unparse(argument)}"
        for place, tree in parsed()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        for argument in html_of(node)
        if not is_text_of_ours(argument)
    }
    assert wrong == {"admin/display.py: '<tr>' + '<td>{}</td>' * len(titles) + '</tr>'"}


@pytest.mark.parametrize(
    "code",
    ["eval(x)", "exec(x)", "compile(x, '', 'exec')", "os.system(x)", "pickle.loads(x)"],
)
def test_a_call_is_seen(code: str) -> None:
    assert calls_never(ast.parse(code))


@pytest.mark.parametrize("code", ["import pickle", "from pickle import loads", "import os, pickle"])
def test_an_import_is_seen(code: str) -> None:
    assert "pickle" in imported(ast.parse(code))


@pytest.mark.parametrize("code", ["importlib.import_module(x)", "import_string(row.job_type)"])
def test_an_import_by_name_is_seen(code: str) -> None:
    assert imports_by_name(ast.parse(code))


# ------------------------------------------------------- the pipe between control and a child


class Runs:
    """Unpickled by anything else, this starts a program."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        return subprocess.check_call, (["touch", str(self.mark)],)


class Names:
    """Unpickled, the object of a dotted name."""

    def __init__(self, module: str, name: str) -> None:
        self.module, self.name = module, name

    def pickled(self) -> bytes:
        out = io.BytesIO()
        out.write(b"\x80\x04")
        for word in (self.module, self.name):
            out.write(b"\x8c" + bytes([len(word)]) + word.encode())
        out.write(b"\x93.")  # STACK_GLOBAL, STOP
        return out.getvalue()


@pytest.fixture
def pipe() -> Iterator[tuple[socket.socket, Channel]]:
    ours, theirs = socket.socketpair()
    channel = Channel(theirs, blocking=True)
    yield ours, channel
    ours.close()
    channel.close()


def sent(pipe: tuple[socket.socket, Channel], data: bytes) -> list[object]:
    ours, channel = pipe
    ours.sendall(struct.pack("!I", len(data)) + data)
    return channel.receive()


def test_what_a_child_sends_makes_control_run_nothing(
    pipe: tuple[socket.socket, Channel], tmp_path: Path
) -> None:
    """A handler that has its child's end of the pipe could write anything into it."""
    mark = tmp_path / "it-ran"
    with pytest.raises(pickle.UnpicklingError, match="no part of a message"):
        sent(pipe, pickle.dumps((Runs(mark),)))
    assert not mark.exists()


@pytest.mark.parametrize(
    ("module", "name"),
    [
        *(("builtins", name) for name in ("eval", "exec", "getattr", "__import__", "open")),
        *(("os", "system"), ("posix", "system"), ("subprocess", "Popen"), ("sys", "modules")),
        *(("reports.models", "GeneratedReport"), ("django.core.management", "call_command")),
        *(("django_leasequeue", "__builtins__"), ("django_leasequeue_evil.x", "y")),
    ],
)
def test_no_other_name_is_looked_up(
    pipe: tuple[socket.socket, Channel], module: str, name: str
) -> None:
    with pytest.raises(pickle.UnpicklingError, match="no part of a message"):
        sent(pipe, Names(module, name).pickled())


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("django_leasequeue.conf", "import_string"),
        ("django_leasequeue.runtime.channel", "pickle.loads"),
        ("django_leasequeue.runtime.reload", "subprocess.Popen"),
        ("django_leasequeue.core.transaction", "run"),
        ("django_leasequeue.runtime.channel", "socket.os.system"),
    ],
)
def test_nor_one_that_the_package_only_uses(
    pipe: tuple[socket.socket, Channel], module: str, name: str
) -> None:
    """A name of another module is reached through any that has imported it."""
    with pytest.raises(pickle.UnpicklingError, match="no part of a message"):
        sent(pipe, Names(module, name).pickled())


def test_messages_arrive(pipe: tuple[socket.socket, Channel]) -> None:
    outcome = Outcome(End.COMPLETED)
    assert sent(pipe, pickle.dumps((outcome,))) == [outcome]
    assert module_name(PACKAGE / "runtime" / "channel.py") == Channel.__module__
