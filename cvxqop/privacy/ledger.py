"""The file of a budget: JSON with a version and a digest, checked before it is believed."""

from __future__ import annotations

import hashlib
import itertools
import json
import math
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cvxqop.errors import BudgetError
from cvxqop.privacy.accounting.composition import Curve

__all__ = ["read", "write"]

FORMAT, VERSION = "cvxqop budget", 1
ADJACENCIES = (None, "replace_one", "add_remove")


def write(path: Path, epsilon: float, delta: float, history: Sequence[Any]) -> None:
    """Write (ε, δ) and the charges; the file appears whole or not at all."""
    body = {
        "format": FORMAT,
        "version": VERSION,
        "epsilon": epsilon,
        "delta": delta,
        "history": [
            {
                "label": charge.label,
                "epsilon": charge.epsilon,
                "delta": charge.delta,
                "adjacency": charge.adjacency,
                "mu": charge.mu,
                "curves": [
                    {"epsilon": c.epsilon, "delta": c.delta, "symmetric": c.symmetric}
                    for c in charge.curves
                ],
            }
            for charge in history
        ],
    }
    temporary = path.with_name(path.name + f".{os.getpid()}.tmp")
    text = json.dumps({**body, "digest": _digest(body)}, indent=1)
    with open(temporary, "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, path)


def read(path: Path) -> tuple[float, float, list[dict[str, Any]]]:
    """(ε, δ) and the charges' fields.

    Raises
    ------
    BudgetError
        If the file cannot be read, was changed since it was written, or is of another version.
    """
    try:
        body = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        raise BudgetError(f"{path.name} is missing or is not a budget file.") from None
    if not isinstance(body, dict) or body.get("format") != FORMAT:
        raise BudgetError(f"{path.name} is not a budget file.")
    if body.get("version") != VERSION:
        raise BudgetError(
            f"{path.name} is of version {body.get('version')!r}; this library reads {VERSION}."
        )
    digest = body.pop("digest", None)
    if digest != _digest(body):
        raise BudgetError(f"{path.name} is damaged or was edited: its digest does not match.")
    try:
        rows = [_row(row) for row in body["history"]]
        return _number(body["epsilon"], 0.0), _number(body["delta"], 0.0), rows
    except (KeyError, TypeError, ValueError):
        raise BudgetError(f"{path.name} is damaged: a field is missing or out of range.") from None


def _digest(body: dict[str, Any]) -> str:
    canonical = json.dumps(body, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()


def _row(row: dict[str, Any]) -> dict[str, Any]:
    if row["adjacency"] not in ADJACENCIES or not isinstance(row["label"], str):
        raise ValueError
    mu = row["mu"]
    return {
        "label": row["label"],
        "epsilon": _number(row["epsilon"], 0.0),
        "delta": _number(row["delta"], 0.0, 1.0),
        "adjacency": row["adjacency"],
        "mu": None if mu is None else _number(mu, 0.0),
        "curves": tuple(_curve(curve) for curve in row["curves"]),
    }


def _curve(curve: dict[str, Any]) -> Curve:
    epsilon = tuple(_number(value, 0.0) for value in curve["epsilon"])
    delta = tuple(_number(value, 0.0, 1.0) for value in curve["delta"])
    ascending = all(a < b for a, b in itertools.pairwise(epsilon))
    falling = all(a >= b for a, b in itertools.pairwise(delta))
    if len(epsilon) != len(delta) or len(epsilon) < 2 or epsilon[0] != 0.0:
        raise ValueError
    if not (ascending and falling and isinstance(curve["symmetric"], bool)):
        raise ValueError
    return Curve(epsilon, delta, curve["symmetric"])


def _number(value: Any, low: float, high: float = math.inf) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError
    if not (low <= value <= high and math.isfinite(value)):
        raise ValueError
    return float(value)
