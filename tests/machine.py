"""What the tests run on, for those that print figures."""

from __future__ import annotations

import platform
from pathlib import Path


def processor() -> str:
    """As the operating system calls it."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.machine())
