"""The examples of docs/declarations.md run, and its manifest is one."""

from __future__ import annotations

import json
import sys
from types import ModuleType

import pytest

from django_leasequeue.manifest import declare_jobs
from django_leasequeue.registry import Registry, registry
from tests import markdown

PAGE = markdown.read("declarations.md")


@pytest.fixture
def example(monkeypatch):
    """Run a block as a module; what it declares is forgotten after the test."""
    before = set(registry)

    def run(heading):
        (block,) = markdown.blocks(markdown.section(PAGE, heading), "python")
        module = ModuleType("example_of_the_page")
        monkeypatch.setitem(sys.modules, module.__name__, module)
        exec(compile(block.code, heading, "exec"), vars(module))
        return module

    yield run
    for kind in set(registry) - before:
        registry.remove(kind.name)


def test_classes(example):
    page = example("Classes")
    assert page.InvoicePdf.takes_context
    assert page.InvoicePdf().handle(None, 7) == {"copies": 1}


def test_keys(example):
    assert example("Keys").monthly_report.key_of({"tenant": "a", "month": "1"}) == "a:1"


def test_payload_versions(example):
    accepted = example("Payload versions").send_greeting.accept({"name": "Ada Lovelace"}, 1)
    assert accepted.arguments == {"first": "Ada", "last": "Lovelace"}


def test_typed_payloads(example):
    page = example("Typed payloads")
    stored = {"order_id": 7, "due": "2042-01-01", "lines": [{"article": "a", "price": 1}]}
    assert page.bill(**page.bill.accept(stored, 1).arguments) == 1
    assert page.remind.accept({"order": stored}, 1).arguments["order"].lines == [page.Line("a", 1)]


def test_sensitive_fields(example):
    assert example("Sensitive fields").charge.masked({"pin": 1}) == {"pin": "********"}


def test_the_manifest(monkeypatch):
    (block,) = markdown.blocks(markdown.section(PAGE, "As data"), "json")
    shop = ModuleType("shop")
    jobs = ModuleType("shop.jobs")
    jobs.SendInvoice = jobs.GeneratePdf = lambda: None  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "shop", shop)
    monkeypatch.setitem(sys.modules, "shop.jobs", jobs)
    known = Registry()
    declare_jobs(json.loads(block.code), known)
    assert [kind.name for kind in known] == ["shop.jobs.SendInvoice", "invoices.generate-pdf"]
