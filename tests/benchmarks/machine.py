"""What the figures were measured on: processors, disk, versions."""

from __future__ import annotations

import os
import platform
import time
from pathlib import Path
from statistics import median
from tempfile import TemporaryFile
from typing import Any

_SYNCS = 200


def machine() -> dict[str, Any]:
    """Return what the machine says of itself."""
    import django

    return {
        "processors": f"{os.cpu_count()} × {_processor()}",
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "kernel": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "django": django.get_version(),
        "fdatasync_ms": sync_milliseconds(),
        "load_before": round(os.getloadavg()[0], 2),
    }


def sync_milliseconds() -> dict[str, float]:
    """Append 4 KiB and make them durable, many times; return median and 95th percentile."""
    times = []
    with TemporaryFile(dir=os.environ.get("BENCH_DISK"), buffering=0) as file:
        for _ in range(_SYNCS):
            file.write(b"\0" * 4096)
            began = time.perf_counter()
            os.fdatasync(file.fileno())
            times.append((time.perf_counter() - began) * 1000)
    return {"p50": round(median(times), 3), "p95": round(percentile(times, 95), 3)}


def percentile(values: list[float], share: float) -> float:
    """Return the value that so many per cent of them do not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, round(len(ordered) * share / 100))]


def server_version() -> str:
    """Return the database server's own words."""
    from django.db import connection

    sql = "SELECT sqlite_version()" if connection.vendor == "sqlite" else "SELECT version()"
    with connection.cursor() as cursor:
        cursor.execute(sql)
        return str(cursor.fetchone()[0])


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()
