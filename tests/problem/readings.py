"""What a reading says the objective is: value, gradient, rows; to be compared with CVXPY's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.special import logsumexp, softmax

from cvxqop.problem.erm import ERM

__all__ = ["difference", "numbers", "reading"]


def numbers(erm: ERM) -> dict[str, Any]:
    """Everything of a reading that is one number or row a record, records along the first axis."""
    first, *others = map(_numbers, erm.loss.terms)
    for place, found in enumerate(others, 1):
        first |= {f"{name} of term {place}": values for name, values in found.items()}
    return first


def _numbers(term: Any) -> dict[str, Any]:
    blocks = [(A.toarray() if sp.issparse(A) else A, C) for A, C in term.rows.blocks(4)]
    empty = [(np.zeros((0, term.rows.dimension)), np.zeros((0, term.rows.terms)))]
    A, C = (np.concatenate(part) for part in zip(*(blocks or empty), strict=True))
    labels = term.rows.labels
    found = {"A": A, "C": C, "q": None if labels is None else labels.take(0, term.rows.n)}
    for j, (_, weight) in enumerate(term.losses):
        found[f"weight {j}"] = np.broadcast_to(weight, len(A))
    return found


def reading(erm: ERM, theta: Any) -> tuple[float, Any]:
    """Value and gradient of the private loss at θ, as it was read."""
    values, gradients = zip(*(_reading(term, theta) for term in erm.loss.terms), strict=True)
    return float(sum(values)), np.sum(gradients, axis=0)


def _reading(term: Any, theta: Any) -> tuple[float, Any]:
    found = _numbers(term)
    A, C, q = found["A"], found["C"], found["q"]
    if term.outputs.count > 1:
        (loss, _), w = term.losses[0], found["weight 0"]
        t = A @ term.outputs.matrix(theta)
        if term.outputs.labelled:
            values, slopes = logsumexp(t, axis=1) - np.sum(C * t, axis=1), softmax(t, axis=1) - C
        else:
            values, slopes = loss.value(t + C).sum(axis=1), loss.derivative(t + C)
        gradient = np.zeros(len(theta))
        gradient[term.outputs.layout] = A.T @ (w[:, None] * slopes)
        return float(w @ values), gradient
    value, slope = 0.0, np.zeros(len(A))
    for j, (loss, _) in enumerate(term.losses):
        w, t = found[f"weight {j}"], A @ theta + (C[:, j] if C.shape[1] else 0.0)
        value += float(w @ loss.value(t))
        slope += w * loss.derivative(t)
    if q is not None:
        value, slope = value + float(q @ (A @ theta)), slope + q
    return value, A.T @ slope


def difference(erm: ERM, objective: Any, points: list[Mapping[Any, Any]]) -> list[float]:
    """objective − (loss as read + r) at each point: the same number everywhere if read right."""
    gaps = []
    for point in points:
        for variable, value in point.items():
            variable.save_value(value)
        rest = 0.0 if erm.regulariser is None else float(erm.regulariser.value)
        own = {variable: point[variable] for variable in erm.variables}
        gaps.append(float(objective.value) - rest - reading(erm, erm.stack(own))[0])
    for variable in points[0]:
        variable.save_value(None)
    return gaps
