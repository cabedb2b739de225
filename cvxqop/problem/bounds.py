"""Public bounds on a record. They are stated, never measured, and enforced on every record."""

from __future__ import annotations

import math
import numbers
import warnings
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from cvxqop._blocks import canonical
from cvxqop._cvxpy import is_sparse
from cvxqop.errors import OptionError, PrivacyWarning
from cvxqop.problem.records.forms import as_numbers, floats

__all__ = ["Bounds"]

FAR = 3.0
"""Centre over half the width of a column, from which on a plan warns; its square for bounds."""

# Fourth powers of numbers in this range, the squares of curvatures, neither overflow nor vanish.
_SMALLEST, _LARGEST = 1e-70, 1e70


@dataclass(frozen=True, kw_only=True)
class Bounds:
    """Bounds on every record that could occur; a record beyond them is clipped.

    A record enters the loss as φ(a'θ + c).

    Parameters
    ----------
    row_norm : float
        Bound on the Euclidean norm of the features of a record: of the listed arrays in its row
        together, each once, in their units. What stands around them is applied by the library:
        public factors (5 * (X @ w) has rows up to 5 row_norm), public matrices (X @ (M @ w): times
        the spectral norm of M), public columns, and labels, which are cut to ±1: the row of
        multiply(y, X @ w + b) is up to √(row_norm² + τ²), with the 1 of the intercept at a size τ
        of about row_norm/√d.
    offset : float, optional
        Bound on |a'θ0 + c|, the argument of φ at the anchor θ0 (with θ0 = 0: on the target), in
        units of the target; a public factor around the whole argument, such as the 10 of
        (y − X @ w) / 0.1, is applied by the library. Required when the loss has an offset or the
        anchor is not zero. It also bounds the labels y of losses such as exp(t) − y t.
    weight : float, optional
        W: a listed array that multiplies the loss of a record, such as cw of
        sum(multiply(cw, huber(…))), is cut to [0, W], in its own units; a public factor beside it
        is applied by the library. Required of such private weights. Weights y + r, y listed and
        r > 0 a public number, are cut to [r, offset + r] where no weight is stated.
    argument : float or pair of floats, optional
        A: the argument t of a loss whose curvature has no bound on the whole line, as it is
        written, lies in [−A, A], or in the pair (low, high). Enforced: beyond it the loss goes on
        as a parabola. Not needed where row_norm and the constraints bound the argument.

    Attributes
    ----------
    from_data : bool
        Whether the numbers were read from the data, which is not private.
    limits : tuple of pairs
        Smallest and largest possible entry of each column, where `from_box` made the bounds.

    Raises
    ------
    OptionError
        If a bound is not a finite number in range (row_norm > 0, offset ≥ 0).

    Examples
    --------
    >>> Bounds(row_norm=1.0, offset=1.0)
    Bounds(row_norm=1.0, offset=1.0)
    """

    row_norm: float
    offset: float | None = None
    weight: float | None = field(default=None, repr=False)
    argument: float | tuple[float, float] | None = field(default=None, repr=False)
    from_data: bool = field(default=False, repr=False)
    limits: tuple[tuple[float, float], ...] = field(default=(), repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "row_norm", _number("row_norm", self.row_norm, positive=True))
        if self.offset is not None:
            object.__setattr__(self, "offset", _number("offset", self.offset, positive=False))
        if self.weight is not None:
            object.__setattr__(self, "weight", _number("weight", self.weight, positive=True))
        if self.argument is not None:
            object.__setattr__(self, "argument", _range(self.argument))
        if not isinstance(self.from_data, bool):
            raise OptionError("Bounds: from_data must be True or False.")

    @property
    def range(self) -> tuple[float, float]:
        """Where the argument of a loss lies by ``argument``; else the whole line."""
        argument = self.argument
        if isinstance(argument, tuple):
            return argument
        end = math.inf if argument is None else argument
        return -end, end

    @classmethod
    def from_box(
        cls, lower: npt.ArrayLike, upper: npt.ArrayLike, *, offset: float | None = None
    ) -> Bounds:
        """Bounds from public limits of each column: row_norm² = Σ_j max(|lower_j|, |upper_j|)².

        Parameters
        ----------
        lower, upper : array_like
            Smallest and largest possible entry of each column, shape (d,) or scalars.
        offset : float, optional
            As in `Bounds`.

        Examples
        --------
        >>> Bounds.from_box([0, -4], [3, 1]).row_norm
        5.0
        """
        low, high = _vector("lower", lower), _vector("upper", upper)
        if low.shape != high.shape:
            raise OptionError(
                f"Bounds.from_box: lower has shape {low.shape} and upper {high.shape}; "
                "give one number a column in both."
            )
        if np.any(low > high):
            raise OptionError("Bounds.from_box: lower must not exceed upper in any column.")
        largest = np.maximum(np.abs(low), np.abs(high))
        limits = tuple(zip(low.tolist(), high.tolist(), strict=True))
        return cls(row_norm=float(np.linalg.norm(largest)), offset=offset, limits=limits)

    @property
    def remarks(self) -> tuple[str, ...]:
        """What the limits of columns say about their scale, for people."""
        largest = [max(abs(low), abs(high)) for low, high in self.limits]
        remarks = []
        for j, (low, high) in enumerate(self.limits):
            centre, half = 0.5 * (low + high), 0.5 * (high - low)
            others = largest[:j] + largest[j + 1 :]
            if half > 0.0 and abs(centre) > FAR * half:
                remarks.append(
                    f"column {j} lies in [{low:g}, {high:g}], far from zero for its width: most of "
                    f"the noise is for its level. Use (column − {centre:g})/{half:g}, in [−1, 1]"
                )
            elif others and largest[j] > FAR * FAR * max(others):
                remarks.append(
                    f"the bound on column {j}, {largest[j]:g}, dwarfs the others, at most "
                    f"{max(others):g}: the noise is all for it. Divide it by {largest[j]:g}"
                )
        return tuple(remarks)

    @classmethod
    def unsafe_from_data(cls, X: Any, y: Any = None) -> Bounds:
        """Bounds read from the data: for exploration only, the result is NOT private.

        Records with missing or infinite entries are left out, as ``nonfinite="zero"`` does.

        Parameters
        ----------
        X : array, sparse matrix or DataFrame, shape (n, d)
            The largest row norm becomes ``row_norm`` (1 if that is zero).
        y : array or Series, shape (n,), optional
            The largest absolute value becomes ``offset``.

        Warns
        -----
        PrivacyWarning
            Always.
        """
        warnings.warn(
            "Bounds.unsafe_from_data reads the bounds from the records: whatever is released with "
            "them is not private. State public bounds with Bounds(row_norm=…, offset=…).",
            PrivacyWarning,
            stacklevel=2,
        )
        matrix = as_numbers(X, "X")
        if is_sparse(matrix):
            rows = canonical(matrix)
            squares = rows.multiply(rows)
        else:
            squares = np.square(floats(matrix))
        norms = np.sqrt(np.asarray(squares.sum(axis=1), dtype=np.float64))
        largest = _largest(norms) or 1.0
        offset = None if y is None else _largest(np.abs(floats(as_numbers(y, "y"))))
        return cls(row_norm=largest, offset=offset, from_data=True)


def _range(value: Any) -> float | tuple[float, float]:
    """A > 0, or low < high."""
    if not isinstance(value, tuple | list):
        return _number("argument", value, positive=True)
    if len(value) != 2:
        raise OptionError("Bounds: argument must be a number, or a pair (low, high).")
    ends = [
        _number("argument", abs(end) if isinstance(end, numbers.Real) else end, positive=False)
        for end in value
    ]
    low, high = (math.copysign(end, own) for end, own in zip(ends, value, strict=True))
    if not low < high:
        raise OptionError("Bounds: argument must be a pair (low, high) with low < high.")
    return low, high


def _number(name: str, value: Any, *, positive: bool) -> float:
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, numbers.Real):
        raise OptionError(f"Bounds: {name} must be a number, not {type(value).__name__}.")
    number = float(value)
    if not math.isfinite(number):
        raise OptionError(f"Bounds: {name} must be finite.")
    if positive and number <= 0:
        raise OptionError(f"Bounds: {name} must be positive (got {number:g}).")
    if number < 0:
        raise OptionError(f"Bounds: {name} must not be negative (got {number:g}).")
    if number > _LARGEST or 0 < number < _SMALLEST:
        raise OptionError(
            f"Bounds: {name} must lie between {_SMALLEST:g} and {_LARGEST:g}; rescale the data."
        )
    return number


def _largest(sizes: npt.NDArray[np.float64]) -> float:
    return float(sizes[np.isfinite(sizes)].max(initial=0.0))


def _vector(name: str, value: npt.ArrayLike) -> npt.NDArray[np.float64]:
    try:
        array = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise OptionError(f"Bounds.from_box: {name} must be an array of numbers.") from None
    if not np.all(np.isfinite(array)):
        raise OptionError(f"Bounds.from_box: {name} must be finite in every column.")
    return np.atleast_1d(array)
