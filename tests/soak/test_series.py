"""The soak's verdict: it sees what grows, and nothing in what only varies."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.soak.series import Sample, growth, table

FLAT = Sample(0, 50, 80, 58, 3, 6, 15, 20, 4)


def series(count=100, **slopes):
    """Return samples in which these figures rise by so much from the first to the last."""
    return [
        replace(
            FLAT,
            seconds=number,
            **{name: getattr(FLAT, name) + rise * number / count for name, rise in slopes.items()},
        )
        for number in range(count)
    ]


def test_what_stays_as_it_is():
    assert growth(series()) == []


@pytest.mark.parametrize("rise", [{"control_mib": 2}, {"children_mib": 4}])
def test_memory_has_some_room(rise):
    assert growth(series(**rise)) == []


@pytest.mark.parametrize(
    "rise",
    [
        {"control_mib": 4},
        {"children_mib": 8},
        {"helpers_mib": 5},
        {"control_threads": 2},
        {"children_threads": 2},
        {"control_files": 2},
        {"children_files": 2},
        {"connections": 2},
    ],
)
def test_growth_is_seen(rise):
    (sentence,) = growth(series(**rise))
    assert sentence.startswith(f"{next(iter(rise))} grew from ")


def test_what_grows_at_the_start_only_is_no_growth():
    assert growth([replace(FLAT, control_mib=30)] * 10 + [FLAT] * 90) == []


def test_a_moment_proves_nothing():
    samples = series()
    samples[95] = replace(FLAT, connections=9, control_mib=99)
    assert growth(samples) == []


def test_too_few_samples_are_no_proof():
    assert growth(series(19)) == ["only 19 samples: too few jobs to judge by"]


def test_the_table():
    head, *rows = table(series()).splitlines()
    assert head.split()[:2] == ["seconds", "control_mib"]
    assert len(rows) == 10
    assert rows[0].split()[1:] == ["50.0", "80.0", "58.0", "3", "6", "15", "20", "4"]
