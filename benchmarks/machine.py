"""What a measurement was made with: versions, processor, cores. No names of machines."""

from __future__ import annotations

import os
import platform
from importlib.metadata import version
from pathlib import Path


def processor() -> str:
    """The processor's model, or its architecture where the model is not told."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    models = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.machine()


def describe_machine() -> str:
    """One line for the head of a results file."""
    versions = ", ".join(f"{name} {version(name)}" for name in ("cvxqop", "cvxpy", "numpy"))
    return (
        f"{versions}, Python {platform.python_version()}; {processor()}, "
        f"{os.cpu_count()} cores, {platform.system()}"
    )
