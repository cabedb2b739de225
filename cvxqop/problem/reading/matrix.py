"""Arrays with one row a record, read from constant expressions into factors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NoReturn

import numpy as np
import scipy.sparse as sp

from cvxqop import _cvxpy
from cvxqop.errors import ProblemError
from cvxqop.problem.private.data import PrivateData
from cvxqop.problem.reading import refusals
from cvxqop.problem.reading.factor import Factor
from cvxqop.problem.reading.public import constant_array, is_plain, number
from cvxqop.problem.records.pieces import Column, Leaf

__all__ = ["MatrixReader"]


class MatrixReader:
    """Reads constant expressions with one row a record; each distinct array becomes one leaf."""

    def __init__(self, private: PrivateData, text: Callable[[Any], str]) -> None:
        self._private, self._text = private, text
        self._leaves: dict[Any, Leaf] = {}
        self._public: list[Leaf] = []
        self._term: Any = None

    def read(self, node: Any, axis: int, term: Any) -> list[Factor]:
        """Summands of a constant expression whose records lie along ``axis``."""
        self._term = term
        return self._read(node, axis)

    def column(self, leaf: Any, term: Any) -> Factor:
        """A private leaf with one entry a record."""
        self._term = term
        long_axis = 1 if leaf.ndim == 2 and leaf.shape[0] == 1 and leaf.shape[1] != 1 else 0
        return Factor(self._private_leaf(leaf, long_axis))

    def indexed_column(self, node: Any, term: Any) -> list[Factor]:
        """One column of a private array: X[:, j]."""
        self._term = term
        array = node.args[0]
        if array.ndim != 2:
            self._refuse(node, "selects some of the records")
        key = _cvxpy.index_key(node)
        chosen = [np.arange(side)[key[axis]].size for axis, side in enumerate(array.shape)]
        axis = 0 if chosen[1] == 1 else 1
        columns = []
        for factor in self._index(node, axis):
            weights = np.asarray(factor.right.toarray())[:, 0]
            if factor.leaf is None:
                columns.append(factor)
            else:
                column = Column(factor.leaf, weights)
                columns.append(Factor(None, factor.coefficient, (*factor.columns, column)))
        return columns

    def public_column(self, value: Any, n: int, term: Any) -> Factor:
        """A public array with one entry a record; a number where all entries are the same."""
        self._term = term
        dense = np.asarray(value.toarray() if _cvxpy.is_sparse(value) else value, dtype=np.float64)
        return self._public_factor(dense.reshape(n, 1))

    def scaled(self, node: Any, term: Any) -> tuple[float, Any] | None:
        """A public number around an expression, and the rest; None where there is none."""
        kind = _cvxpy.kind(node)
        if kind == "neg":
            return -1.0, node.args[0]
        sides = [node.args, node.args[::-1]] if kind in ("multiply", "matmul") else []
        for scalar, rest in [node.args[::-1]] if kind == "divide" else sides:
            inner = scalar.args[0] if _cvxpy.kind(scalar) == "promote" else scalar
            if (inner is scalar and scalar.ndim) or self._private.contains(inner):
                continue
            value = number(inner)
            if value is not None and (value or kind != "divide"):
                self.check_public(constant_array(inner), term)
                return (1.0 / value if kind == "divide" else value), rest
        return None

    def check_public(self, value: Any, term: Any) -> None:
        """Where n is private, an array with one row a record must be one plain number.

        With one record such an array cannot be told from a row of numbers, so that both are refused
        for any number of records.
        """
        if self._private.count_is_private and getattr(value, "ndim", False) and not is_plain(value):
            shape = _cvxpy.format_shape(("n", *(value.shape[1:] or (1,))))
            raise ProblemError(
                f"The private term {self._text(term)} uses a public array of shape {shape}, "
                f"{refusals.PUBLIC_ROWS}."
            )

    def _read(self, node: Any, axis: int) -> list[Factor]:
        kind = _cvxpy.kind(node)
        if not self._private.contains(node):
            value = constant_array(node)
            if node.ndim == 1:
                return [self._public_factor(value.reshape(1, -1))]
            return [self._public_factor(value.T if axis == 1 else value)]
        if node.ndim == 1 and node.size != 1:
            self._refuse(node, "is a vector of records in the place of one row")
        if kind in ("constant", "parameter"):
            return [Factor(self._private_leaf(node, axis))]
        if kind == "transpose" and node.ndim == 2:
            return self._read(node.args[0], 1 - axis)
        scaled = self.scaled(node, self._term)
        if scaled is not None:
            own = self._read(scaled[1], axis)
            return [replace(f, coefficient=f.coefficient * scaled[0]) for f in own]
        if kind == "conj":
            return self._read(node.args[0], axis)
        if kind == "add":
            if any(argument.shape != node.shape for argument in node.args):
                self._refuse(node, "broadcasts inside an array of records")
            return [factor for argument in node.args for factor in self._read(argument, axis)]
        if kind in ("multiply", "divide"):
            self._refuse(
                node, "scales an array of records entry by entry; compute it in NumPy and list it"
            )
        if kind == "matmul":
            return self._product(node, axis)
        if kind in ("promote", "broadcast") and node.args[0].shape == (node.shape[0], 1):
            repeated = np.ones((1, node.shape[1]))
            return [factor.times(repeated) for factor in self._read(node.args[0], axis)]
        if kind == "index":
            return self._index(node, axis)
        return self._refuse(node, "may combine several records")

    def _product(self, node: Any, axis: int) -> list[Factor]:
        records, public = node.args if axis == 0 else node.args[::-1]
        if self._private.contains(public):
            self._refuse(node, "combines several records")
        value = constant_array(public)
        if axis == 1:
            value = value.T if public.ndim == 2 else value.reshape(-1, 1)
        elif public.ndim == 1:
            value = value.reshape(-1, 1)
        return [factor.times(value) for factor in self._read(records, axis)]

    def _index(self, node: Any, axis: int) -> list[Factor]:
        array, key = node.args[0], _cvxpy.index_key(node)
        if array.ndim != 2:
            self._refuse(node, "selects some of the records")
        n, width = array.shape[axis], array.shape[1 - axis]
        if not np.array_equal(np.arange(n)[key[axis]], np.arange(n)):
            self._refuse(
                node, "selects some of the records; select them in NumPy and list the result"
            )
        chosen = np.arange(width)[key[1 - axis]]
        select = sp.coo_array(
            (np.ones(chosen.size), (chosen, np.arange(chosen.size))), shape=(width, chosen.size)
        )
        return [factor.times(select) for factor in self._read(array, axis)]

    def _private_leaf(self, leaf: Any, axis: int) -> Leaf:
        match = self._private.match(leaf)
        if match is None:
            return self._refuse(leaf, "is not listed in private")
        if match.axis is not None and match.axis != axis:
            self._refuse(
                leaf,
                "is used with its records along the wrong axis: the arrays in private have one row "
                "a record, so this expression combines several records (if the columns are the "
                "records, list the transpose in private, a vector with shape (n,) or (n, 1))",
            )
        if match.entry not in self._leaves:
            self._leaves[match.entry] = Leaf(
                _oriented(_cvxpy.leaf_value(leaf), axis),
                ("private", match.entry),
                True,
                self._private.names[match.entry],
            )
        return self._leaves[match.entry]

    def _public_factor(self, value: Any) -> Factor:
        """A public (n, p) array: its one row where all rows are the same, else a leaf."""
        self.check_public(value, self._term)
        if not np.all(np.isfinite(value.data if _cvxpy.is_sparse(value) else value)):
            raise ProblemError(
                f"The private term {self._text(self._term)} holds a public array with NaN or "
                "infinite entries."
            )
        n = value.shape[0]
        if n <= 1 or _equal_rows(value):
            row = value[:1].toarray() if _cvxpy.is_sparse(value) else value[:1]
            if n == 0:
                # No row to look at: take the public column for ones, as with n = 1.
                row = np.ones((1, value.shape[1]))
            return Factor(None, right=sp.csr_array(np.asarray(row, dtype=np.float64)))
        for known in self._public:
            if known.array.shape == value.shape and _equal(known.array, value):
                return Factor(known)
        shape = _cvxpy.format_shape(("n", *value.shape[1:]))
        name = f"a public array of shape {shape}"
        leaf = Leaf(value, ("public", len(self._public)), False, name)
        self._public.append(leaf)
        return Factor(leaf)

    def _refuse(self, node: Any, reason: str) -> NoReturn:
        raise ProblemError(
            f"{self._text(node)} in the term {self._text(self._term)} {reason}. {refusals.ONE_ROW}"
        ) from None


def _oriented(array: Any, axis: int) -> Any:
    if array.ndim == 1:
        return array.reshape(-1, 1)
    return array.T if axis == 1 else array


def _equal_rows(value: Any) -> bool:
    if _cvxpy.is_sparse(value):
        return bool(value.nnz == 0)
    return bool(np.all(value == value[:1]))


def _equal(a: Any, b: Any) -> bool:
    if _cvxpy.is_sparse(a) or _cvxpy.is_sparse(b):
        return bool(_cvxpy.is_sparse(a) and _cvxpy.is_sparse(b) and (a != b).nnz == 0)
    return bool(np.array_equal(a, b))
