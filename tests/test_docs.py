"""The documentation against the code: what a page lists exists, and what exists is listed."""

from __future__ import annotations

import ast
import hashlib
import importlib
import inspect
import json
import re
from argparse import ArgumentParser
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from django.apps import apps
from django.db.models import NOT_PROVIDED, Field, Model, Value

import django_leasequeue
from django_leasequeue import Exponential, Fixed, JobContext, Linear, codec, signals
from django_leasequeue.backend.checks import check_backend
from django_leasequeue.cli.parsing import SubParser
from django_leasequeue.cli.worker import add_worker_arguments
from django_leasequeue.conf import BOUNDS, MIN_KEY_LENGTH, TIMEOUT_BOUNDS, Conf
from django_leasequeue.core import bury, recover, resign, sealing, ticking
from django_leasequeue.core.clock import RandomKey, UtcNow
from django_leasequeue.core.request import build_request
from django_leasequeue.doctor import configuration, diagnoses
from django_leasequeue.doctor.findings import Kind
from django_leasequeue.logs import BoundJob
from django_leasequeue.models import Job
from django_leasequeue.outcomes import GIVE_BACK_LIMIT, SPENDING, End, Spending
from django_leasequeue.registry import Declaration
from django_leasequeue.runtime.connections import bounds_for
from django_leasequeue.runtime.options import WorkerOptions
from django_leasequeue.statuses import TRANSITIONS, Status
from tests import house_rules, markdown
from tests.markdown import DOCS, ROOT
from tests.test_workflows import DJANGOS, ENTRIES

PAGES = [pytest.param(page, id=str(page.relative_to(ROOT))) for page in markdown.pages()]
TABLES = {model._meta.db_table: model for model in apps.get_app_config("leasequeue").get_models()}


# Pages, links, code


def test_the_readme_is_short():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(text.splitlines()) < 150
    assert len(markdown.blocks(text, "python")[0].code.splitlines()) <= 12


@pytest.mark.parametrize("page", PAGES)
def test_links_and_anchors_resolve(page):
    links = markdown.links(page.read_text(encoding="utf-8"))
    assert [link for link in links if not external(link) and lost(page, link)] == []


def external(link: str) -> bool:
    return link.startswith(("https:", "http:"))


def test_external_links_are_listed():
    """No test asks the network; whoever looks whether they are still right has one list of them."""
    listed = (ROOT / "tests" / "external_links.txt").read_text(encoding="utf-8").splitlines()
    assert listed == sorted(
        {
            link
            for page in markdown.pages()
            for link in markdown.links(page.read_text(encoding="utf-8"))
            if external(link)
        }
    )


def lost(page: Path, link: str) -> bool:
    name, _, anchor = link.partition("#")
    target = page.parent / name if name else page
    if not target.is_file():
        return True
    return bool(anchor) and anchor not in markdown.anchors(target.read_text(encoding="utf-8"))


def test_the_index_leads_to_every_page():
    linked = {link.partition("#")[0] for link in markdown.links(markdown.read("index.md"))}
    assert {str(page.relative_to(DOCS)) for page in markdown.docs()} - {"index.md"} == linked


@pytest.mark.parametrize("page", PAGES)
def test_python_blocks_compile_and_import_what_exists(page):
    for block in markdown.blocks(page.read_text(encoding="utf-8"), "python"):
        tree = ast.parse(block.code, f"{page.name}, line {block.line}")
        missing = [name for name in house_imports(tree) if not exists(name)]
        assert missing == [], f"{page.name}, line {block.line}"


def house_imports(tree: ast.AST) -> Iterator[str]:
    names = house_rules.imported_modules(tree)
    return (name for name in names if f"{name}.".startswith("django_leasequeue."))


def exists(name: str) -> bool:
    module, _, attribute = name.rpartition(".")
    try:
        importlib.import_module(name)
    except ImportError:
        return bool(module) and hasattr(importlib.import_module(module), attribute)
    return True


def test_every_public_name_is_on_the_page_of_the_api():
    page = markdown.read("api.md")
    listed = re.findall(r"`(\w+)`", markdown.section(page, "Public names"))
    assert sorted(listed) == sorted(django_leasequeue.__all__)
    shown = ", ".join(re.findall(r"^<!-- autodoc: (.+) -->$", page, re.MULTILINE)).split(", ")
    assert sorted(name for name in shown if "." not in name) == sorted(django_leasequeue.__all__)


def test_the_make_targets_of_the_readme_exist():
    targets = re.search(r"^\.PHONY: (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert targets
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert set(re.findall(r"`make (\w+)`", text)) <= set(targets[1].split())


def test_the_readme_names_the_versions_of_the_workflow():
    rows = markdown.table((ROOT / "README.md").read_text(encoding="utf-8"), "Support")
    for row, job, key in (
        ("Python", "sqlite", "python"),
        ("MySQL", "mysql", "mysql"),
        ("MariaDB", "mariadb", "mariadb"),
        ("PostgreSQL", "postgres", "postgres"),
    ):
        named = rows[row]["tested by the workflow file"].split(", ")
        tested = [entry[key] for name, entry in ENTRIES if name == job]
        assert named == list(dict.fromkeys(tested)), row
    words = {word for _name, entry in ENTRIES for word in entry["pythons"].split(",")}
    djangos = [version for word, (version, _python) in DJANGOS.items() if word in words]
    assert rows["Django"]["tested by the workflow file"].split(", ") == djangos


# Settings, options, context


def test_the_settings():
    rows = markdown.table(markdown.read("settings.md"), "Settings")
    assert list(rows) == [item.name for item in fields(Conf)]
    types = {
        "str": "str",
        "int": "int",
        "float": "int, float",
        "float | None": "None, int, float",
        "Mapping[str, Any]": "dict",
        "Mapping[str, Mapping[str, Any]]": "dict",
        "tuple[str, ...]": "list of str",
        "Jobs": "dict, list, str",
        "Backoff": "strategy, callable, str",
    }
    for item in fields(Conf):
        row = rows[item.name]
        assert row["default"] == shown(getattr(Conf(), item.name)), item.name
        assert row["type"] == types[str(item.type)], item.name
        if item.name in BOUNDS:
            low, high = BOUNDS[item.name]
            assert row["bounds"] == f"{low} to {high}", item.name
    least, most = TIMEOUT_BOUNDS
    assert rows["TIMEOUT"]["bounds"] == f"{least} to {most}"


def shown(default: object) -> str:
    if default == Exponential():
        return "Exponential()"
    return f'"{default}"' if isinstance(default, str) else repr(default)


def test_the_options_of_the_worker():
    parser = ArgumentParser(add_help=False)
    add_worker_arguments(parser)
    rows = markdown.table(markdown.read("worker.md"), "Options")
    assert {option: row["default"] for option, row in rows.items()} == {
        action.option_strings[0]: option_default(action.dest, action.default)
        for action in parser._actions
    }


def test_the_options_and_counts_of_sign():
    parser = SubParser(subcommand="sign", add_help=False)
    text = markdown.read("signing.md")
    assert set(markdown.table(text, "`leasequeue sign`")) == {
        action.option_strings[0] for action in parser._actions
    }
    kinds = markdown.section(text, "`leasequeue sign`").partition("| kind |")[2]
    named = {
        name
        for row in re.findall(r"^\|([^|]*)\|", kinds, re.MULTILINE)
        for name in re.findall(r"`(\w+)`", row)
    }
    assert named == {item.name for item in fields(resign.Resigned)}


def option_default(name: str, default: object) -> str:
    """Return what the page says of an option; the command leaves None to settings and Worker."""
    if name.upper() in {item.name for item in fields(Conf)}:
        return f"setting `{name.upper()}`"
    if default is None:
        defaults = {item.name: item.default for item in fields(WorkerOptions)}
        default = defaults.get(name)
    if default is None:
        return "none"
    return "off" if default is False else str(default)


def test_the_options_of_a_job_type():
    rows = markdown.table(markdown.read("handlers.md"), "Declare")
    assert {option: row["default"] for option, row in rows.items()} == {
        item.name: shown(item.default)
        for item in fields(Declaration)
        if item.name not in ("handler", "name")
    }


def test_the_options_of_enqueue():
    rows = markdown.table(markdown.read("enqueue.md"), "Options")
    parameters = inspect.signature(build_request).parameters.values()
    options = {item.name: item.default for item in parameters if item.kind is item.KEYWORD_ONLY}
    assert set(rows) == {*options, "using"}
    for name, default in options.items():
        if not rows[name]["default"].startswith("declared, else "):
            assert rows[name]["default"] == shown(default), name


def test_the_context():
    rows = markdown.table(markdown.read("handlers.md"), "The context")
    listed = {name.partition("(")[0] for name in rows}
    # In `transaction` the executor runs an atomic handler, of `settled` it learns how that ended.
    assert listed == set(public_attributes(JobContext)) - {"transaction", "settled"}


def public_attributes(cls: type) -> Iterator[str]:
    tree = ast.parse(inspect.getsource(cls))
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from [] if node.name.startswith("_") else [node.name]
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield from [] if node.attr.startswith("_") else [node.attr]


def test_the_strategies():
    rows = markdown.table(markdown.read("handlers.md"), "Retries")
    assert set(rows) == {written(strategy) for strategy in (Exponential, Linear, Fixed)}


def written(strategy: type) -> str:
    parameters = inspect.signature(strategy).parameters.values()
    return f"{strategy.__name__}({', '.join(f'{p.name}={p.default!r}' for p in parameters)})"


def test_the_checks():
    """Every id of the code is in the table, each for one finding, and its section is about it."""
    text = markdown.read("checks.md")
    kinds = {kind.id: kind for kind in kinds_of_findings()}
    assert set(markdown.table(text, "All findings")) == {*kinds, *ids_of_tasks()}
    assert not ids_of_tasks() & set(kinds)
    for kind in kinds.values():
        assert kind.section in markdown.anchors(text), kind.id
        (heading,) = [
            found
            for found in re.findall(r"^## (.+)$", text, re.MULTILINE)
            if markdown.anchor_of(found) == kind.section
        ]
        assert kind.id.partition(".")[2] in markdown.section(text, heading), kind.id


def test_who_looks():
    rows = markdown.table(markdown.read("checks.md"), "All findings")
    for word, listed in {
        "check": [configuration.settings, *diagnoses.WITHOUT_SERVER],
        "check --database": diagnoses.QUICK,
    }.items():
        assert {name for name, row in rows.items() if row["looks"] == word} == {
            kind.id for diagnosis in listed for kind in kinds_named_by(diagnosis)
        }


def kinds_named_by(function: Any) -> Iterator[Kind]:
    module = importlib.import_module(function.__module__)
    named = (vars(module).get(name) for name in function.__code__.co_names)
    return (kind for kind in named if isinstance(kind, Kind))


@pytest.mark.parametrize(
    ("page", "heading"), [("checks.md", "All findings"), ("tasks.md", "Checks")]
)
def test_the_checks_of_tasks(page, heading):
    rows = markdown.table(markdown.read(page), heading)
    assert ids_of_tasks() == {
        name for name, row in rows.items() if row.get("looks", "check alone") == "check alone"
    }


def ids_of_tasks() -> set[str]:
    """Return the ids of what a backend of django.tasks says of its own settings."""
    found = check_backend("default", [""], {"database": "", "DATABASE": "nowhere"})
    return {str(message.id) for message in found}


def kinds_of_findings() -> Iterator[Kind]:
    for path in (house_rules.PACKAGE / "doctor").glob("*.py"):
        module = importlib.import_module(house_rules.module_name(path))
        yield from (thing for thing in vars(module).values() if isinstance(thing, Kind))


@pytest.mark.parametrize(
    ("page", "text"),
    [
        ("handlers.md", f"deeper than {codec._MAX_DEPTH} levels"),
        ("handlers.md", f"After {GIVE_BACK_LIMIT} releases in a row"),
        ("schema.md", f"after {GIVE_BACK_LIMIT} a release spends an attempt"),
        ("middleware.md", f"a limit of {sealing.MAX_CONTEXT_BYTES} bytes"),
        ("signing.md", f"at least {MIN_KEY_LENGTH} characters"),
        ("signing.md", f"in batches of {resign._BATCH}"),
        ("worker.md", f"{recover.BATCH} leases at a time"),
        ("schedules.md", f"at most {ticking.MISSED:g} seconds late is not missed"),
        ("schedules.md", f"up to {ticking.AT_ONCE} in a transaction"),
        ("worker.md", f"one at a time, its lease renewed, {bury.MAX_TRIES} tries each"),
    ],
)
def test_a_figure_is_the_code_s(page, text):
    assert text in " ".join(markdown.read(page).split())


# Signals


def test_the_signals_and_their_arguments():
    rows = markdown.table(markdown.read("signals.md"), "List")
    listed = {name: set(re.findall(r"\w+", row["arguments"])) for name, row in rows.items()}
    assert listed == signals_told()
    assert set(listed) == set(signals.__all__) - {"QueueSignal"}


def signals_told() -> dict[str, set[str]]:
    """Return every signal that the package sends, by itself or by way of partial()."""
    told: dict[str, set[str]] = {}
    for path in house_rules.sources():
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
            for sent in (call.func, *call.args):
                name, _, method = ast.unparse(sent).rpartition(".")
                if method == "tell" and name in signals.__all__:
                    told[name] = {str(keyword.arg) for keyword in call.keywords}
    return told


# Log events and bounds


def test_the_log_events_and_their_fields():
    rows = markdown.table(markdown.read("log-events.md"), "List")
    listed = {event: set(re.findall(r"\w+", row["fields"])) for event, row in rows.items()}
    logged = logged_events()
    logged["log_lines_dropped"] = {"count"}
    logged["log"] = {"logger", "message", *BoundJob._fields}
    assert listed == logged


def test_the_writer_of_lines_has_two_events_of_its_own():
    source = (house_rules.PACKAGE / "logs.py").read_text(encoding="utf-8")
    assert 'event or "log"' in source
    assert '"log_lines_dropped", {"count"' in source
    assert '{"logger": record.name, "message"' in source


def logged_events() -> dict[str, set[str]]:
    """Return every event that the package's calls of log_event name, with all their fields."""
    events: dict[str, set[str]] = {}
    for path in house_rules.sources():
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for call in ast.walk(tree):
            if isinstance(call, ast.Call) and ast.unparse(call.func) == "log_event":
                for event in events_of(call.args[0], tree):
                    events.setdefault(event, set()).update(fields_of(call, tree))
    return events


def events_of(node: ast.expr, tree: ast.Module) -> set[str]:
    """Return the texts that an expression may be: a constant, a choice, a look-up in a table."""
    if isinstance(node, ast.IfExp):
        return events_of(node.body, tree) | events_of(node.orelse, tree)
    if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name):
        table = assigned(node.value.id, tree)
        assert isinstance(table, ast.Dict)
        return set().union(*(events_of(value, tree) for value in table.values))
    assert isinstance(node, ast.Constant), ast.unparse(node)
    return {str(node.value)}


def fields_of(call: ast.Call, tree: ast.Module) -> set[str]:
    names: set[str] = set()
    for keyword in call.keywords:
        if keyword.arg is not None:
            names.add(keyword.arg)
            continue
        assert isinstance(keyword.value, ast.Name)
        table = assigned(keyword.value.id, tree)
        assert isinstance(table, ast.Dict)
        names |= {str(ast.literal_eval(key)) for key in table.keys if key}
    return {"frames" if name == "raised" else name for name in names - {"level"}}


def assigned(name: str, tree: ast.Module) -> ast.expr:
    """Return what a name is assigned in a module, where that happens once."""
    (value,) = [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign | ast.AnnAssign)
        and any(isinstance(target, ast.Name) and target.id == name for target in targets_of(node))
        and node.value is not None
    ]
    return value


def targets_of(node: ast.Assign | ast.AnnAssign) -> list[ast.expr]:
    return node.targets if isinstance(node, ast.Assign) else [node.target]


def test_the_bounds():
    rows = markdown.table(markdown.read("worker.md"), "Bounds")
    assert {name: row["at most"] for name, row in rows.items()} == {
        name.replace("_", " "): f"{seconds:g} s" for name, seconds in bounds_for(3600).items()
    }


# The schema


def test_every_table_is_described():
    headings = re.findall(r"^#+ (leasequeue_\w+)$", markdown.read("schema.md"), re.MULTILINE)
    assert set(headings) == set(TABLES)


@pytest.mark.parametrize("name", TABLES)
def test_the_columns(name):
    rows = markdown.table(markdown.read("schema.md"), name)
    listed = {column: (row["type"], row["default"]) for column, row in rows.items()}
    assert listed == columns(TABLES[name])


def columns(model: type[Model]) -> dict[str, tuple[str, str]]:
    return {
        str(field.column): (type_of(field), default_of(field))
        for field in model._meta.concrete_fields
    }


def type_of(field: Field[Any, Any]) -> str:
    types = {
        "BigAutoField": "bigint",
        "BigIntegerField": "bigint",
        "BooleanField": "boolean",
        "CharField": f"text({field.max_length})",
        "ExactCharField": f"exact({field.max_length})",
        "FloatField": "float",
        "ForeignKey": "bigint",
        "HexField": f"ascii({field.max_length})",
        "JSONField": "json",
        "PositiveIntegerField": "int",
        "PositiveSmallIntegerField": "smallint",
        "SmallIntegerField": "smallint",
        "TextField": "longtext",
        "TokenField": "token",
        "UtcDateTimeField": "utc",
    }
    return types[type(field).__name__]


def default_of(field: Field[Any, Any]) -> str:
    default: Any = field.db_default
    if isinstance(default, Value):
        default = default.value
    if field.primary_key:
        return "counted"
    if default is NOT_PROVIDED:
        return "NULL" if field.null else "none: required"
    if isinstance(default, UtcNow | RandomKey):
        return "now" if isinstance(default, UtcNow) else "random"
    if isinstance(default, bool):
        return str(default).lower()
    if isinstance(default, dict | list):
        return json.dumps(default)
    return {None: "NULL", "": "empty"}.get(default, str(default))


def test_the_statuses_and_their_transitions():
    text = markdown.read("schema.md")
    assert list(markdown.table(text, "Statuses")) == [str(status) for status in Status]
    (diagram,) = markdown.blocks(text, "mermaid")
    drawn = re.findall(r"^ +(\w+) --> (\w+): .+$", diagram.code, re.MULTILINE)
    legal = [
        (str(source), str(target)) for source, targets in TRANSITIONS.items() for target in targets
    ]
    assert sorted(drawn) == sorted(legal)


def test_what_each_end_spends():
    rows = markdown.table(markdown.read("schema.md"), "What each end spends")
    assert {
        outcome: Spending(
            attempt=row["attempt"] == "spent",
            crash=row["crash"] == "+1",
            recorded=row["attempt record"].startswith("yes"),
        )
        for outcome, row in rows.items()
    } == {str(end): spending for end, spending in SPENDING.items()}


def test_what_a_handler_does_spends_what_its_end_spends():
    rows = markdown.table(markdown.read("handlers.md"), "Ending an attempt")
    for handler, row in rows.items():
        spent = {True: "spent", False: "given back"}[
            SPENDING[End(row["outcome on record"])].attempt
        ]
        assert row["attempt"] == spent, handler


HEADINGS = {
    "mysql": "MySQL",
    "mariadb": "MariaDB",
    "postgres": "PostgreSQL",
    "sqlite": "SQLite",
}


@pytest.fixture
def plain_insert(db_kind: str) -> str:
    text = markdown.section(markdown.read("enqueue.md"), "From other languages")
    (block,) = markdown.blocks(markdown.section(text, HEADINGS[db_kind]), "sql")
    return block.code.rstrip(";")


def test_the_plain_insert_is_the_same_job(connection, plain_insert):
    with connection.cursor() as cursor:
        cursor.execute(plain_insert)
    job = Job.objects.get()
    assert job.idempotency_key == hashlib.sha256(b"monthly-report:acme:2042-01").hexdigest()
    assert job.payload == {"tenant_id": "acme", "report_month": "2042-01"}
    again = django_leasequeue.enqueue(
        "report.generate", job.payload, queue="reports", key="monthly-report:acme:2042-01"
    )
    assert (again.pk, again.created) == (job.pk, False)


def test_the_inspection_statements_run(connection, plain_insert):
    text = markdown.section(markdown.read("schema.md"), "Inspection")
    with connection.cursor() as cursor:
        cursor.execute(plain_insert)
        for block in markdown.blocks(text, "sql"):
            cursor.execute(block.code.rstrip(";"))
            cursor.fetchall()
