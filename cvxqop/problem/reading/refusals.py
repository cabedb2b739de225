"""Why a private term is refused, and what to write instead. Each completes "The private term …"."""

from __future__ import annotations

from typing import Any, NoReturn

from cvxqop import _cvxpy
from cvxqop.errors import ProblemError
from cvxqop.problem.spelling.impossible import IMPOSSIBLE

__all__ = [
    "ARRAY",
    "BESIDE",
    "BROADCAST",
    "CHOSEN",
    "COMBINES",
    "COMPUTED",
    "DECLARE",
    "LOOP",
    "MEAN",
    "ONE_ROW",
    "ONE_ROW_OF_OUTPUTS",
    "OPEN",
    "PER_RECORD",
    "PUBLIC_MATRIX",
    "PUBLIC_ROWS",
    "PUBLIC_WEIGHTS",
    "SEVERAL",
    "SHAPES",
    "UNKNOWN",
    "UNLISTED",
    "UNLISTED_COUNTED",
    "divided",
    "in_arguments",
    "kinked",
    "of_atom",
    "of_count",
    "of_shape",
    "over_records",
    "refuse_open",
    "stacked",
]

ARRAY = "The objective is an array; it must be a number."

COMBINES = (
    "is linear or quadratic in records that it combines; it is not a sum of losses φ(a'θ + c) over "
    "records. Write least squares as sum_squares(X @ w - y)"
)

ONE_ROW = "Row i of a private loss must be affine in the variables and depend on record i alone."

ONE_ROW_OF_OUTPUTS = (
    "Several outputs a record are read from X @ Theta + b - Y, Theta and b variables, one row of X "
    "and Y a record and one column of Theta, b and Y an output."
)

CHOSEN = (
    "Square brackets choose records of an array, and others of another array, or one of them "
    "twice: a record would be in several rows. Choose the same records of all arrays, each once, "
    "or choose in NumPy and list what is chosen: Xt, yt = X[train], y[train], "
    "cp.sum_squares(Xt @ w - yt) and private=[Xt, yt]."
)

COMPUTED = (
    "The objective holds no private data: nothing in private occurs in it. What NumPy computes "
    "from a listed array, such as X.T @ X, X.mean(0), -X, X[i] or X[train], is another array. "
    "Write the loss with the rows, such as cp.sum_squares(X @ w - y), or list the very arrays of "
    "the loss in private=[…]: negX = -X, negX @ w and private=[negX]."
)

LOOP = (
    "A sum, a list or the constraints have as many alike parts as there are records, "
    "and the numbers in them are not the rows of listed arrays in their order. Write all of them "
    "at once, with the listed arrays: cp.sum_squares(X @ w - y) in the place of "
    "sum(cp.square(X[i] @ w - y[i]) for i in range(n))."
)

MEAN = (
    "is a sum that is divided by a number, as a mean is divided by the number of records, which is "
    "private under add_remove and with persons. Write the sum and multiply the regulariser by a "
    "public number instead, write a factor that has nothing to do with n as a product, "
    '0.5 * sum(…), or use adjacency="replace_one" without persons'
)

PUBLIC_WEIGHTS = (
    "has public weights, one a record; under add_remove and with persons the position of a record "
    "has no meaning. "
    "List them in private, and state Bounds(row_norm=…, weight=2), write one weight for all as a "
    'number and not as an array, or use adjacency="replace_one" without persons'
)

PUBLIC_ROWS = (
    "with one row a record; under add_remove and with persons it says how many records there are. "
    "List it in private, write one number for all records as a number and not as an array, or use "
    'adjacency="replace_one" without persons'
)

PUBLIC_MATRIX = (
    "multiplies records by a public matrix, which for more of them either combines several or has "
    "one row a record, so that it says how many there are. Write a number as a number, list a "
    'factor of each record in private, or use adjacency="replace_one" without persons'
)

BROADCAST = "broadcasts an array of records"

PER_RECORD = IMPOSSIBLE["per record"].text

SHAPES = "give both sides the same shape, (n,) or (n, 1)"

UNLISTED = (
    "that is listed neither in private nor in public, and one of its axes is as long as there are "
    "records, or it has as many entries as a private array. If it comes from the records, list the "
    "very array in private=[…]: a slice, a copy or a product of a listed array is another array. "
    "If everyone may know it, list it in public=[…]."
)

UNLISTED_COUNTED = (
    "that is listed neither in private nor in public. Under add_remove and with persons every "
    "array is listed, because its length may be the number of records. If it comes from the "
    "records, list the very array in private=[…]: a slice, a copy or a product of a listed array "
    "is another array. If everyone may know it, and it has not one row a record, list it in "
    "public=[…]. Write one number as a number."
)

DECLARE = (
    ". If it is convex and smooth with bounds that hold for every possible record, state them: "
    "declared=cvxqop.Declared(smoothness=…, anchor_gradient=…)"
)

SEVERAL = (
    "is a function of several numbers of a record; a loss that is read is a function of one, its "
    "argument a'θ + c, which is affine in the variables" + DECLARE
)

BESIDE = (
    "has private numbers inside the loss beside its argument a'θ + c: then no bound holds for "
    "every record. Leave them out, or make them part of the argument" + DECLARE
)

_SMOOTHER = (
    "use huber(…) in place of an absolute value, square(pos(…)) in place of a hinge, the square "
    "of a norm in place of the norm"
)

OPEN = {
    "smoothing": (
        'is a loss that is not smooth. State smoothing="auto", or a width in units of the argument '
        "such as smoothing=0.5, to have its Moreau envelope instead; or " + _SMOOTHER
    ),
    "range": (
        "is a loss without a bound on its curvature on the whole line. Bound the variable by a "
        "constraint, such as norm(w, 2) <= 2, or the argument, such as Bounds(row_norm=…, "
        "argument=2): beyond it the loss goes on as a parabola"
    ),
    "domain": (
        "is a loss that is not finite, or has no bound on its curvature, on all of the range of "
        "its argument. State a range inside its domain, such as Bounds(row_norm=…, "
        "argument=(0.5, 2)): beyond it the loss goes on as a parabola"
    ),
    "labels": (
        "has private numbers times its argument, such as counts, and no public bound on them: "
        "state Bounds(row_norm=…, offset=…). Numbers beyond it are cut"
    ),
    "weight": (
        "is weighted by private data, without a public bound: state Bounds(row_norm=…, weight=2). "
        "Weights are cut to [0, weight]. Weights from counts of labels change with every record: "
        "leave them out, and state public class_weight={-1: 1, 1: 2}"
    ),
}

UNKNOWN = (
    "is not a loss that is known: sum_squares, sum(square(…)), norm(…, 2)**2, sum(huber(…)), "
    "sum(logistic(…)), sum(square(pos(…))) and sums of other convex functions of an affine "
    "argument are"
)

_OVER_RECORDS = {"pnorm": "norm", "sigma_max": "norm", "norm_inf": "norm_inf", "max": "max"} | {
    name: name for name in ("sum_largest", "log_sum_exp")
}


def refuse_open(term: str, lacks: str) -> NoReturn:
    """Refuse a term that waits for a public number, and say for which.

    Raises
    ------
    ProblemError
        Always.
    """
    raise ProblemError(f"The private term {term} {OPEN[lacks]}.") from None


_NORMS = frozenset({"norm1", "pnorm", "sigma_max", "norm_inf"})


def over_records(node: Any, kind: str, hidden: bool = False) -> bool:
    """Whether an atom makes one number of its whole argument that is no sum over the entries.

    Where the number of records is ``hidden``, of one record, too, of which CVXPY writes every norm
    as that of one number.
    """
    if hidden and kind in _NORMS:
        return getattr(node, "axis", None) is None and node.ndim == 0
    whole = node.size == 1 and getattr(node, "axis", None) is None
    return kind in _OVER_RECORDS and whole and (hidden or node.args[0].size != 1)


def of_atom(node: Any, kind: str, hidden: bool = False) -> str:
    """Reason for an atom that no loss is read from."""
    if not _cvxpy.has_variables(node):
        return "does not depend on a variable; remove it"
    if _cvxpy.is_linear(node):
        return COMBINES
    if hidden and over_records(node, kind, hidden) and kind in _NORMS:
        return f"{IMPOSSIBLE['norm'].text}, or write a sum of absolute values, sum(abs(…))"
    if over_records(node, kind, hidden):
        return IMPOSSIBLE[_OVER_RECORDS[kind]].text
    if kind in _NOT_SMOOTH_ATOMS:
        return f"is a loss that is not smooth, and no function of one number a record: {_SMOOTHER}"
    return UNKNOWN + DECLARE


_NOT_SMOOTH_ATOMS = frozenset(
    {"abs", "norm1", "norm_inf", "normnuc", "maximum", "max", "pnorm", "sum_largest", "sigma_max"}
)


def in_arguments(names: str) -> str:
    """Private arrays in the coefficients or the intercept of a `glm_loss`."""
    return (
        f"has private data ({names}) in theta or intercept, which hold variables and public "
        "numbers only: the records of a glm_loss are X and y. Make it columns of X, such as "
        "np.column_stack([X, z])"
    )


def kinked(kind: str) -> str:
    """Reason for an atom with a kink in a declared term."""
    return (
        f"holds {kind} with a kink, so that no declaration is true of it: it is a loss that is not "
        f"smooth. Leave declared out, or {_SMOOTHER}"
    )


def stacked(kind: str) -> str:
    """Reason for records that are put together by an atom."""
    return (
        f"puts records together by {kind}. Put columns of X together in NumPy, and list the array "
        "in private; of several outputs, make the columns of one matrix, X @ Theta"
    )


def divided(names: str) -> str:
    """Reason for a private divisor; ``names`` are the arrays'."""
    return (
        f"is divided by private data ({names}). List the reciprocals and multiply by them, as by "
        "private weights: sum(multiply(r, square(X @ w - y))), Bounds(row_norm=…, weight=2)"
    )


def of_shape(argument: Any, hidden: bool = False) -> str:
    """Reason for an argument with more than one entry a record; ``hidden`` leaves out numbers."""
    shapes = _broadcast_shapes(argument)
    shape = tuple(argument.shape)
    if hidden and shapes:
        return f"combines arrays that broadcast: every record would meet every other; {SHAPES}"
    if shapes:
        return (
            f"combines arrays of shapes {' and '.join(shapes)}, which broadcast to {shape}: every "
            f"record would meet every other; {SHAPES}"
        )
    return (
        f"has an argument{'' if hidden else f' of shape {shape}'}: several outputs a record, "
        "of a form that is not known. Use one output a record, or sum_squares(X @ Theta - Y) or "
        "log_sum_exp(X @ Theta, axis=1) with one row a record"
    )


def of_count(argument: Any) -> str:
    """Reason for an argument whose entries are not as many as there are records."""
    if argument.ndim == 2:
        return of_shape(argument, hidden=True)
    return "has an argument that does not have one entry for each record"


def _broadcast_shapes(node: Any) -> list[str]:
    """Shapes of the operands that a broadcast inside ``node`` brought to its shape."""
    if _cvxpy.kind(node) in ("add", "multiply", "divide"):
        inner = [a.args[0] for a in node.args if _cvxpy.kind(a) == "broadcast"]
        if any(argument.size != 1 for argument in inner):
            operands = [a.args[0] if _cvxpy.kind(a) == "broadcast" else a for a in node.args]
            return sorted({str(tuple(a.shape)) for a in operands})
    for argument in node.args:
        if argument.shape == node.shape:
            found = _broadcast_shapes(argument)
            if found:
                return found
    return []
