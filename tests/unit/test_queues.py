"""Queue names as a worker is given them."""

from __future__ import annotations

import pytest

from django_leasequeue.core.lanes import parse_queues


@pytest.mark.parametrize(
    ("given", "queues"),
    [
        ("*", ("*",)),
        ("a", ("a",)),
        (" b , a ", ("b", "a")),
        (["x", "y z"], ("x", "y z")),
        (("é",), ("é",)),
        ("n" * 64, ("n" * 64,)),
        ("Mail,mail", ("Mail", "mail")),
    ],
)
def test_names_in_the_order_given(given, queues):
    assert parse_queues(given) == queues


@pytest.mark.parametrize(
    "given", ["", " ", ",", "a,", "a,,b", [], [""], "n" * 65, "a,a", "*,a", ["*", "*"]]
)
def test_lists_that_make_no_sense(given):
    with pytest.raises(ValueError):
        parse_queues(given)
