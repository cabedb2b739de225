"""Whether an expression is a sum over records, read off its structure.

Every node has a *state*: PUBLIC (no record occurs in it), an axis (slice i along it depends on
record i and on no other), or SUMMED (a sum over records of something that depends on one each).
Whatever would combine two records in one nonlinear function is refused, because then a bound on
"the loss of one record" has no meaning.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import cvxpy as cp

from cvxqop import _cvxpy
from cvxqop.errors import ProblemError
from cvxqop.problem.private.data import PrivateData
from cvxqop.problem.reading import refusals
from cvxqop.problem.reading.public import constant_array, is_plain

__all__ = ["PUBLIC", "SUMMED", "SeparableReader", "State", "Structure"]

PUBLIC, SUMMED = -1, -2
State = int

_COMBINES = (
    "combines records in {}, so that it is not a sum over records and no loss of one record "
    "exists. Declared losses are sums, such as sum(log_sum_exp(X @ W, axis=1))"
)


class SeparableReader:
    """Reads the state of private terms.

    Parameters
    ----------
    private : PrivateData
        Which leaves are private.
    refuse : callable
        Raises for the term that is being read, with a reason.
    """

    def __init__(self, private: PrivateData, refuse: Callable[[str], NoReturn]) -> None:
        self._private, self._refuse = private, refuse
        self.counts: set[int] = set()

    def read(self, node: Any) -> State:
        """State of an expression."""
        if not self._private.contains(node):
            return PUBLIC
        if _cvxpy.is_leaf(node):
            return self._leaf(node)
        kind = _cvxpy.kind(node)
        if _cvxpy.holds_records(node):
            self._refuse("keeps its records outside CVXPY; leave glm_loss out of declared losses")
        if any(map(self._private.contains, _cvxpy.kept_aside(node))):
            self._refuse(_COMBINES.format(f"the shape of {kind}"))
        if kind == "power" and _cvxpy.exponent(node) == 2 and self._is_norm(node.args[0]):
            return SUMMED
        if not all(isinstance(argument, cp.Expression) for argument in node.args):
            self._refuse(_COMBINES.format(kind))  # a whole problem, or constraints
        states = [self.read(argument) for argument in node.args]
        reader = {
            "promote": self._stretch, "broadcast": self._stretch, "reshape": self._reshape,
            "transpose": self._transpose, "index": self._index, "matmul": self._product,
            "vstack": self._stack, "hstack": self._stack, "neg": self._entrywise,
            "add": self._entrywise, "multiply": self._entrywise, "divide": self._entrywise,
        }.get(kind)  # fmt: skip
        if reader is not None:
            return reader(node, states)
        if _cvxpy.reduced_axes(node) is not None:
            return self._reduction(node, states, kind)
        if not _cvxpy.is_elementwise(node):
            self._refuse(_COMBINES.format(kind))
        return self._entrywise(node, states)

    def read_rows(self, node: Any) -> None:
        """Refuse an expression that has not one slice a record, or several outputs in columns."""
        axis = self.read(node)
        if axis < 0:
            self._refuse(refusals.COMBINES)
        if axis == 1 and node.ndim == 2 and node.shape[0] > 1:
            self._refuse(refusals.of_shape(node, self._private.count_is_private))

    def _leaf(self, leaf: Any) -> State:
        match = self._private.match(leaf)
        assert match is not None
        axis = 0 if match.axis is None else match.axis
        if axis < 0 or leaf.ndim == 0:
            self._refuse("holds a private array whose rows are not the records")
        self.counts.add(int(leaf.shape[axis]))
        return axis

    def _entrywise(self, node: Any, states: Sequence[State]) -> State:
        """Sums, products and elementwise atoms: equal axes, or a sum that is scaled."""
        kind = _cvxpy.kind(node)
        axes = {state for state in states if state >= 0}
        if kind == "divide":
            self._divisor(node, states)
        if SUMMED in states:
            scaled = kind in ("multiply", "divide") and states.count(SUMMED) == 1
            if axes or not (kind in ("add", "neg") or scaled):
                self._refuse(_COMBINES.format(kind))
            return SUMMED
        if len(axes) != 1:
            self._refuse(_COMBINES.format(kind))
        axis = axes.pop()
        for argument, state in zip(node.args, states, strict=True):
            if state == PUBLIC:
                self._check_public(argument, axis, node.ndim)
            elif argument.ndim != node.ndim or argument.shape[axis] != node.shape[axis]:
                # Of one record two axes may be one: where n is private, the words are those above.
                told = kind if self._private.count_is_private else f"a broadcast in {kind}"
                self._refuse(_COMBINES.format(told))
        return axis

    def _divisor(self, node: Any, states: Sequence[State]) -> None:
        """Nothing is divided by a sum over records; where n is private, nor by what could be n."""
        if states[1] == SUMMED:
            self._refuse(_COMBINES.format("a divisor"))
        if not self._private.count_is_private or states[1] != PUBLIC:
            return
        self._refuse(refusals.MEAN)

    def _stretch(self, node: Any, states: Sequence[State]) -> State:
        inner, state = node.args[0], states[0]
        if state == SUMMED:
            return SUMMED
        axis = int(state + node.ndim - inner.ndim)
        if node.shape[axis] != inner.shape[state]:
            self._refuse(_COMBINES.format("a broadcast"))
        return axis

    def _reshape(self, node: Any, states: Sequence[State]) -> State:
        inner, state = node.args[0], states[0]
        if state == SUMMED:
            return SUMMED
        n = inner.shape[state]
        if inner.shape == node.shape:
            return state
        single = inner.size == n == node.size and n in node.shape
        if not single:
            self._refuse(_COMBINES.format("a reshape; transpose or stack columns instead"))
        return int(node.shape.index(n))

    def _transpose(self, node: Any, states: Sequence[State]) -> State:
        if states[0] == SUMMED:
            return SUMMED
        axes = node.axes or tuple(reversed(range(node.ndim)))
        return int(list(axes).index(states[0]))

    def _index(self, node: Any, states: Sequence[State]) -> State:
        """Columns may be chosen, records not."""
        inner, axis = node.args[0], states[0]
        if axis == SUMMED:
            return SUMMED
        key = _cvxpy.index_key(node)
        if list(range(inner.shape[axis])[key[axis]]) != list(range(inner.shape[axis])):
            self._refuse("chooses among the records by their position, which has no meaning")
        if node.ndim == inner.ndim:
            return axis
        if not (node.ndim == 1 and inner.ndim == 2 and node.size == inner.shape[axis]):
            self._refuse(_COMBINES.format("an index"))
        return 0

    def _stack(self, node: Any, states: Sequence[State]) -> State:
        """vstack puts vectors below each other, hstack matrices side by side."""
        if all(state in (SUMMED, PUBLIC) for state in states):
            return SUMMED
        vectors = all(argument.ndim == 1 for argument in node.args)
        matrices = all(argument.ndim == 2 for argument in node.args)
        vertical = _cvxpy.kind(node) == "vstack"
        axis = 0 if vectors else 1 if vertical else 0
        right = (vertical and (vectors or matrices)) or (not vertical and matrices)
        if not right or any(state not in (axis, PUBLIC) for state in states):
            self._refuse(_COMBINES.format("a stack; put records below each other"))
        for argument, state in zip(node.args, states, strict=True):
            if state == PUBLIC:
                self._check_public(argument, axis, argument.ndim)
        return 1 if vertical else 0

    def _product(self, node: Any, states: Sequence[State]) -> State:
        """Rows times public numbers keep their axis; sums over records end it."""
        left, right = node.args
        inner = (left.ndim - 1, max(right.ndim - 2, 0))  # the axes that are summed over
        if max(left.ndim, right.ndim) > 2:
            self._refuse(_COMBINES.format("a product of more than two axes"))
        if states[0] >= 0 and states[1] >= 0:
            if tuple(states) != inner:
                self._refuse(_COMBINES.format("a product"))
            return SUMMED
        if SUMMED in states:
            if PUBLIC not in states:
                self._refuse(_COMBINES.format("a product"))
            return SUMMED
        side = 0 if states[0] >= 0 else 1
        if states[side] == inner[side]:
            other = node.args[1 - side]
            self._check_public(other, inner[1 - side], other.ndim)
            return SUMMED
        return 0 if side == 0 else node.ndim - 1

    def _reduction(self, node: Any, states: Sequence[State], kind: str) -> State:
        axes = _cvxpy.reduced_axes(node) or ()
        axis = states[0]
        if any(state != PUBLIC for state in states[1:]):
            self._refuse(_COMBINES.format(kind))
        if axis == SUMMED and kind == "sum":
            return SUMMED
        if axis < 0:
            self._refuse(_COMBINES.format(kind))
        if axis in axes:
            if kind not in ("sum", "quad_over_lin"):
                self._refuse(_COMBINES.format(f"{kind} over the records; give it axis=…"))
            return SUMMED
        if node.keepdims:
            return axis
        return axis - sum(other < axis for other in axes)

    def _is_norm(self, node: Any) -> bool:
        """Whether the square of a node is a sum of squares over everything."""
        return _cvxpy.is_euclidean(node) and self.read(node.args[0]) >= 0

    def _check_public(self, node: Any, axis: int, ndim: int) -> None:
        """What stands beside the records, with one entry for each or one for all."""
        while _cvxpy.kind(node) in ("promote", "broadcast"):
            node = node.args[0]
        own = axis - (ndim - node.ndim)
        row = _cvxpy.stretched(node)
        if row is not None and row.ndim == node.ndim:
            node = row  # of one record, CVXPY does not write the broadcast
        one = own < 0 or node.shape[own] == 1
        if one and (own < 0 or not self._private.count_is_private):
            return
        kind = _cvxpy.kind(node)
        if kind in ("add", "neg", "multiply", "divide"):
            for argument in node.args:
                self._check_public(argument, own, node.ndim)
            return
        if kind == "matmul":  # rows of the left factor, or columns of the right one
            side = 0 if own == 0 and node.args[0].ndim == 2 else 1
            factor = node.args[side]
            self._check_public(factor, side * (factor.ndim - 1), factor.ndim)
            return
        if _cvxpy.has_variables(node):
            if one and self._private.has_listed(node):
                return
            self._refuse(refusals.PER_RECORD)
        value = constant_array(node)
        if is_plain(value) or _cvxpy.is_of_log_normcdf(value):
            return
        if self._private.count_is_private:
            self._refuse(f"holds a public array {refusals.PUBLIC_ROWS}")


class Structure(SeparableReader):
    """The structure of an argument, whose divisors are the business of its reader."""

    def has_axis(self, node: Any, axis: int | None = None) -> bool:
        """Whether slice i of an expression, along ``axis`` if given, depends on record i and on no
        other."""
        try:
            found = self.read(node)
            return found >= 0 if axis is None else found == axis
        except ProblemError:
            return False

    def _divisor(self, node: Any, states: Sequence[State]) -> None:
        if states[1] != PUBLIC:
            super()._divisor(node, states)
