"""Bulk enqueue: each column arrives as it was given, whatever its neighbours in the batch have."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from django_leasequeue import enqueue_many
from django_leasequeue.models import Job

SOON = datetime(2040, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)
TEXT = "quotes ' \" \\ %s {} \u2028 \U0001f600 é"
TYPE = "bulk.values"


def stored(*options, payloads=None) -> list[Job]:
    given = payloads or [{}] * len(options)
    jobs = enqueue_many(zip([TYPE] * len(given), given, options or [{}] * len(given), strict=True))
    found = Job.objects.in_bulk([job.id for job in jobs])
    return [found[job.id] for job in jobs]


def test_numbers_of_both_kinds_and_none_in_one_column(connection):
    timeouts = [None, 5, 0.1, 1e-05, 86_400]
    assert [job.timeout for job in stored(*({"timeout": each} for each in timeouts))] == timeouts


def test_texts_and_payloads(connection):
    payloads = [{"n": n, TEXT: [TEXT, None, 1.5, 2**60, {}]} for n in range(3)]
    assert [job.payload for job in stored(payloads=payloads)] == payloads
    assert [job.queue_name for job in stored({"queue": TEXT}, {"queue": "é"})] == [TEXT, "é"]


def test_moments_to_the_microsecond(connection):
    moments = [SOON + timedelta(microseconds=n) for n in range(3)]
    expiries = [moment + timedelta(days=1) for moment in moments]
    jobs = stored(*({"run_after": a, "expires": b} for a, b in zip(moments, expiries, strict=True)))
    assert [job.available_at for job in jobs] == moments
    assert [job.expires_at for job in jobs] == expiries


def test_spans(connection):
    jobs = stored(*({"delay": 60 * n, "expires": 3600 * n} for n in (1, 2)))
    first, second = ((job.available_at - job.created_at).total_seconds() for job in jobs)
    assert 59 < first < 62
    assert 119 < second < 122
    assert jobs[1].expires_at - jobs[0].expires_at > timedelta(seconds=3599)
