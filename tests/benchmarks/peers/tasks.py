"""The work as tasks of django.tasks."""

from __future__ import annotations

from django.tasks import task

from tests.benchmarks.peers import project


@task()
def noop(n: int) -> None:
    """Do nothing."""
    project.noop(n)


@task()
def effect(n: int) -> None:
    """Write one row."""
    project.effect(n)


def enqueue(count: int, kind: str) -> None:
    """Enqueue so many, in one transaction."""
    chosen = {"noop": noop, "effect": effect}[kind]
    with project.in_transaction():
        for n in range(count):
            chosen.enqueue(n)
