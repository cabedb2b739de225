"""Estimators that are no sum over records, and the nearest one that is.

Every remedy is code that the tests run: X (n, d) and y (n,) are listed, w (d,) is a variable, lam
is a public number.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["IMPOSSIBLE", "IN_A_CONSTRAINT", "Impossible"]


@dataclass(frozen=True)
class Impossible:
    """Why no loss of one record exists, and a line that has one.

    Attributes
    ----------
    why : str
        Completes "The private term …".
    objective : str
        What to minimise instead.
    constraints, options : str
        What it needs beside bounds, as code.
    where : str
        What the names in it are, other than X, y, w and lam.
    """

    why: str
    objective: str
    constraints: str = ""
    options: str = ""
    where: str = ""

    @property
    def text(self) -> str:
        """The reason with its remedy."""
        parts = [f"{self.why}. Write {self.objective}"]
        parts += [f"subject to {self.constraints}"] if self.constraints else []
        parts += [f"with {self.options}"] if self.options else []
        parts += [self.where] if self.where else []
        return ", ".join(parts)


_NO_SUM = (
    "is a loss that is not smooth, and no sum over records, so that no loss of one record exists"
)
_OF_ALL = "so that each record meets all others and no loss of one record exists"

IMPOSSIBLE = {
    "norm": Impossible(
        f"{_NO_SUM}: the square root is taken of the sum. Square the norm, norm(X @ w - y, 2)**2: "
        "without a regulariser it has the same minimiser, and beside one there is a λ for it",
        "cp.sum_squares(X @ w - y) + lam * cp.norm1(w)",
    ),
    "norm_inf": Impossible(
        f"{_NO_SUM}: the largest residual is that of one record", "cp.sum(cp.huber(X @ w - y))"
    ),
    "max": Impossible(
        f"{_NO_SUM}: the largest is that of one record", "cp.sum(cp.huber(X @ w - y))"
    ),
    "sum_largest": Impossible(
        f"{_NO_SUM}: which records are the largest depends on all of them",
        "k * a + cp.sum(cp.pos(X @ w - y - a))",
        options='smoothing="auto"',
        where="k the number of the largest and a = cp.Variable() their level, public: the same "
        "for residuals",
    ),
    "log_sum_exp": Impossible(
        "is the logarithm of a sum over records, and no sum over records itself, so that there is "
        "no loss of one record whose curvature could be bounded",
        "cp.sum(cp.exp(X @ w - y))",
        "[cp.norm(w, 2) <= 2]",
    ),
    "quad_form": Impossible(
        f"weighs products of the residuals of different records, {_OF_ALL}",
        "cp.sum(cp.multiply(c, cp.square(X @ w - y)))",
        options="public=[c]",
        where="c the public weights, one a record, or cp.sum_squares(X @ w - y)",
    ),
    "matrix": Impossible(
        "has a private matrix that was computed from all records, or with one row and one column "
        "a record: it is no sum over records. Write X'X by its rows; of a kernel, list features F "
        "at public landmarks, one row a record",
        "cp.sum_squares(F @ v - y) + lam * cp.sum_squares(v)",
        where="F the features or X itself",
    ),
    "per record": Impossible(
        "has one entry a record although no record occurs in it, and θ must not grow with the "
        "number of records. Write one number for all records without an axis, such as an intercept "
        "cp.Variable(); for a curve, list a basis F on a public grid, one row a record",
        "cp.sum_squares(F @ v - y) + lam * cp.norm1(cp.diff(v))",
    ),
    "different records": Impossible(
        "run over different numbers of records. Every term must have one entry for each record. Of "
        "two data sets, stack the rows in NumPy and list the stacks",
        "cp.sum_squares(X @ w - y)",
        where="X = np.vstack([X1, X2]) and y = np.concatenate([y1, y2]); of rows chosen by a "
        "label, write the label y, of 0 and 1, as a factor: cp.sum(cp.logistic(X @ w) - "
        "cp.multiply(y, X @ w)), or weigh classes by class_weight={-1: 1, 1: 2}",
    ),
}
"""By name."""

IN_A_CONSTRAINT = {
    "norm": Impossible(
        "bounds a norm of all records. Its Lagrangian form has the same solutions, with a public "
        "lam in the place of the bound",
        "cp.sum_squares(X @ w - y) + lam * cp.norm1(w)",
    ),
    "row": Impossible(
        "is a constraint a record, that one record can make infeasible. Put it into the objective "
        "as a penalty",
        "lam * cp.sum_squares(w) + cp.sum(cp.square(cp.pos(1 - cp.multiply(y, X @ w))))",
    ),
    "dual": Impossible(
        "is an equation of variables with one entry a record. Use the primal problem, whose "
        "variables do not grow with the number of records",
        "cp.sum(cp.pos(1 - cp.multiply(y, X @ w))) + lam * cp.sum_squares(w)",
        options='smoothing="auto"',
    ),
    "equation": Impossible(
        "is an equation that the records have to meet. Of weights that meet a public target t, "
        "one a record, use the dual problem, whose variables do not grow with their number",
        "cp.sum(cp.exp(X @ w)) - N * (t @ w)",
        "[cp.norm(w, 2) <= 2]",
        where="N a public number of records, exp(X @ w) the weights",
    ),
}
"""Of constraints that hold private data; completes "The constraint …"."""
