"""Variables with one entry a record that a problem does without: residuals, slacks, epigraphs.

Each is minimised over in closed form, for any values of the others, so that what is left has the
same minimisers:

- r tied by an equality c r + e = 0 is −e/c;
- t with lower bounds alone, t ≥ e_j, in an objective that does not decrease in t, is max_j e_j;
  with upper bounds alone, in one that does not increase, min_j e_j;
- u, v ≥ 0 tied by p u − m v = e, in an objective that decreases in neither, are pos(e)/p and
  pos(−e)/m.

Monotonicity is what the rules of disciplined convex programming prove, with nothing known of the
signs of private numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

import cvxpy as cp

from cvxqop import _cvxpy
from cvxqop.errors import ProblemError
from cvxqop.problem.private.data import PrivateData
from cvxqop.problem.reading.public import number
from cvxqop.problem.reading.separable import Structure

__all__ = ["eliminated"]

Found = tuple[Any, list[Any], list[tuple[Any, Any]]]


def eliminated(objective: Any, constraints: Sequence[Any], data: PrivateData) -> Found | None:
    """The problem without one variable, or two, of a constraint that holds private data.

    Returns
    -------
    (objective, constraints, [(variable, expression), …]) or None
        What is left, and what took the place of the variables; None if there is no such variable.
    """
    for constraint in constraints:
        if not (_cvxpy.is_relation(constraint) and data.contains(constraint)):
            continue
        for variable in _cvxpy.variables(constraint):
            problem = _Problem(objective, list(constraints), data)
            found = problem.without(variable, constraint)
            if found is not None:
                return found
    return None


class _Problem:
    def __init__(self, objective: Any, constraints: list[Any], data: PrivateData) -> None:
        self._objective, self._constraints, self._data = objective, constraints, data

    def without(self, variable: Any, constraint: Any) -> Found | None:
        own = self._isolated(constraint, variable)
        if own is None:
            return None
        if _cvxpy.kind(constraint) != "equality":
            return self._extreme(variable)
        c, rest = own
        free = not _cvxpy.attributes(variable) and not self._bounded_below(variable)
        if free and self._one_a_record(rest):
            others = [one for one in self._constraints if one is not constraint]
            used = any(variable in set(_cvxpy.variables(e)) for e in (self._objective, *others))
            return self._put({variable: _over(_negated(rest), c)}, others) if used else None
        return self._split(variable, constraint)

    def _extreme(self, variable: Any) -> Found | None:
        """The largest lower bound, or the smallest upper one."""
        bounds, others, signs = [], [], set()
        for constraint in self._constraints:
            if variable not in set(_cvxpy.variables(constraint)):
                others.append(constraint)
                continue
            own = self._isolated(constraint, variable)
            if (
                own is None
                or _cvxpy.kind(constraint) != "inequality"
                or not self._convex(constraint)
            ):
                return None
            c, rest = own  # c v + rest <= 0
            if self._data.contains(rest) and not self._one_a_record(rest):
                return None
            signs.add(c < 0.0)
            bounds.append(_over(rest if c < 0.0 else _negated(rest), abs(c)))
        if "nonneg" in _cvxpy.attributes(variable):
            signs.add(True)
            bounds.append(cp.Constant(0.0))
        if len(signs) != 1 or set(_cvxpy.attributes(variable)) - {"nonneg"}:
            return None
        lower = signs.pop()
        bounds.sort(key=lambda bound: not self._data.contains(bound))
        if not self._monotone(variable, lower, any(map(_is_zero, bounds))):
            return None
        extreme = bounds[0]
        if len(bounds) > 1:
            extreme = (cp.maximum if lower else cp.minimum)(*bounds)
        if extreme.shape != variable.shape:
            return None
        return self._put({variable: extreme}, others)

    def _split(self, variable: Any, constraint: Any) -> Found | None:
        """The positive and the negative part."""
        for other in _cvxpy.variables(constraint):
            if other is variable:
                continue
            one, two = self._isolated(constraint, variable), self._isolated(constraint, other)
            if one is None or two is None or one[0] * two[0] > 0.0:
                continue
            rest = self._rest(constraint, {variable, other})
            if not self._one_a_record(rest):
                continue
            others = [own for own in self._constraints if own is not constraint]
            pair = (variable, other)
            kept = [own for own in others if not any(self._keeps_positive(own, v) for v in pair)]
            positive = [
                "nonneg" in _cvxpy.attributes(v) or any(self._keeps_positive(o, v) for o in others)
                for v in pair
            ]
            alone = not any(set(_cvxpy.attributes(v)) - {"nonneg"} for v in pair)
            free = not any(set(pair) & set(_cvxpy.variables(own)) for own in kept)
            monotone = all(self._monotone(v, True, True) for v in pair)
            if all(positive) and alone and free and monotone:
                # c1 u + c2 v + rest = 0
                sign = 1.0 if one[0] > 0.0 else -1.0
                up = _negated(rest) if sign > 0.0 else rest
                down = rest if sign > 0.0 else _negated(rest)
                return self._put(
                    {
                        variable: _over(cp.pos(up), abs(one[0])),
                        other: _over(cp.pos(down), abs(two[0])),
                    },
                    kept,
                )
        return None

    def _put(self, where: dict[Any, Any], constraints: list[Any]) -> Found | None:
        """The expressions in the place of the variables, everywhere."""
        if any(expression.shape != variable.shape for variable, expression in where.items()):
            return None
        objective = _cvxpy.substituted(self._objective, where)
        if objective is None:
            return None
        kept = []
        for constraint in constraints:
            if not any(variable in where for variable in _cvxpy.variables(constraint)):
                kept.append(constraint)
                continue
            sides = [_cvxpy.substituted(argument, where) for argument in constraint.args]
            if any(side is None for side in sides) or not _cvxpy.is_relation(constraint):
                return None
            kept.append(_cvxpy.related(constraint, *sides))
        return objective, kept, list(where.items())

    def _monotone(self, variable: Any, increasing: bool, nonneg: bool) -> bool:
        """Whether no summand that holds the variable decreases in it, or increases: by the rules a
        convex expression may stand in its place, or a concave one."""
        shape = variable.shape
        zero = 0.0 if nonneg else cp.Variable(shape)
        probe = (cp.maximum if increasing else cp.minimum)(cp.Variable(shape), zero)
        held = False
        for term in _summands(self._objective):
            if variable not in set(_cvxpy.variables(term)):
                continue
            held = True
            moved = _cvxpy.substituted(term, {variable: probe})
            moved = None if moved is None else self._unsigned(moved)
            if moved is None or not (moved.is_dcp() and moved.is_convex()):
                return False
        return held

    def _one_a_record(self, node: Any) -> bool:
        """Whether slice i of an expression depends on record i, and on no other."""
        return self._data.contains(node) and Structure(self._data, _refuse).has_axis(node)

    def _convex(self, constraint: Any) -> bool:
        sides = [self._unsigned(side) for side in constraint.args]
        return all(s is not None for s in sides) and bool((sides[0] - sides[1]).is_convex())

    def _unsigned(self, node: Any) -> Any:
        return _cvxpy.unsigned(node, lambda leaf: self._data.match(leaf) is not None)

    def _bounded_below(self, variable: Any) -> bool:
        return any(self._keeps_positive(constraint, variable) for constraint in self._constraints)

    def _keeps_positive(self, constraint: Any, variable: Any) -> bool:
        """Whether a constraint is variable ≥ 0."""
        if _cvxpy.kind(constraint) != "inequality" or self._data.contains(constraint):
            return False
        own = self._isolated(constraint, variable)
        return own is not None and own[0] < 0.0 and _is_zero(own[1])

    def _isolated(self, constraint: Any, variable: Any) -> tuple[float, Any] | None:
        """(c, e) with the constraint c · variable + e ≤ 0, or = 0, and e without the variable."""
        if not _cvxpy.is_relation(constraint) or constraint.shape != variable.shape:
            return None
        found = [
            (c, node) for c, node in _sides(constraint) if variable in set(_cvxpy.variables(node))
        ]
        if len(found) != 1:
            return None
        factor = self._factor(found[0][1], variable)
        rest = self._rest(constraint, {variable})
        return None if factor is None else (found[0][0] * factor, rest)

    def _factor(self, node: Any, variable: Any) -> float | None:
        """c of c · variable."""
        if node is variable:
            return 1.0
        if _cvxpy.kind(node) not in ("multiply", "divide"):
            return None
        scalar, other = sorted(node.args, key=_cvxpy.has_variables)
        inner = scalar.args[0] if _cvxpy.kind(scalar) == "promote" else scalar
        if other is not variable or inner.ndim or self._data.contains(inner):
            return None
        value = None if _cvxpy.has_variables(inner) else number(inner)
        if not value:
            return None
        return value if _cvxpy.kind(node) == "multiply" else 1.0 / value

    def _rest(self, constraint: Any, variables: set[Any]) -> Any:
        """What the sides of a constraint add up to without the summands of some variables."""
        total = None
        for sign, node in _sides(constraint):
            if variables & set(_cvxpy.variables(node)):
                continue
            if total is None:
                total = node if sign > 0 else -node
            else:
                total = total + node if sign > 0 else total - node
        return cp.Constant(0.0) if total is None else total


def _refuse(reason: str) -> NoReturn:
    """What a structure that is none is answered with.

    Raises
    ------
    ProblemError
        Always.
    """
    raise ProblemError(reason)


def _sides(constraint: Any) -> list[tuple[float, Any]]:
    """Summands of left − right, with their signs."""
    left, right = constraint.args
    return [*_signed(left, 1.0), *_signed(right, -1.0)]


def _signed(node: Any, sign: float) -> list[tuple[float, Any]]:
    kind = _cvxpy.kind(node)
    if kind == "add":
        return [own for argument in node.args for own in _signed(argument, sign)]
    if kind == "neg":
        return _signed(node.args[0], -sign)
    if kind in ("promote", "broadcast") and node.args[0].ndim == 0:
        return _signed(node.args[0], sign)
    return [(sign, node)]


def _summands(node: Any) -> list[Any]:
    """Terms of a sum, signs included."""
    return [node if sign > 0 else -node for sign, node in _signed(node, 1.0)]


def _negated(node: Any) -> Any:
    """−e, term by term."""
    total = None
    for sign, own in _signed(node, -1.0):
        if total is None:
            total = own if sign > 0 else -own
        else:
            total = total + own if sign > 0 else total - own
    return total


def _over(node: Any, divisor: float) -> Any:
    return node if divisor == 1.0 else _negated(node) if divisor == -1.0 else node / divisor


def _is_zero(node: Any) -> bool:
    """Whether a node is the number zero."""
    if _cvxpy.kind(node) in ("promote", "broadcast"):
        node = node.args[0]
    return _cvxpy.kind(node) == "constant" and node.ndim == 0 and not node.value
