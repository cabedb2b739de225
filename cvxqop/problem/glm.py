"""A loss term that keeps its records outside CVXPY: no copy, any size, private by itself."""

from __future__ import annotations

from typing import Any

import numpy as np

from cvxqop.errors import OptionError
from cvxqop.problem.glm_atom import MARGIN_LOSSES, GLMLoss
from cvxqop.problem.losses.scalar import ScalarLoss

__all__ = ["GLMLoss", "glm_loss"]

_RESIDUAL = ("squared", "huber")


def glm_loss(
    loss: str | ScalarLoss,
    X: Any,
    y: Any,
    theta: Any,
    *,
    intercept: Any = None,
    threshold: float = 1.0,
    labels: str | None = None,
) -> GLMLoss:
    """The private loss Σ_i φ(…) of a linear model as a term of a CVXPY objective.

    With t_i = x_i'θ + intercept the summands are

        "squared"        (t_i − y_i)²
        "huber"          huber(t_i − y_i, threshold)
        "logistic"       log(1 + exp(−y_i t_i)),       labels ±1
        "squared_hinge"  max(1 − y_i t_i, 0)²,          labels ±1

    and φ(t_i − y_i) for a `ScalarLoss`. Labels are cut to [−1, 1], so that ``row_norm`` bounds
    ‖x_i‖ alone: the 1 of an intercept stays public, and counts about row_norm/√p. Boolean labels
    are mapped, False to −1 and True to 1; numbers 0 and 1 are where ``labels="01"`` says so.

    CVXPY copies arrays that it is given; here X and y stay where they are and are read by blocks
    of rows. The term is private by itself: it needs no entry in ``private=``. It can be scaled and
    added to public terms like any expression, and has a value and a gradient; only CVXPY's own
    solvers cannot take it.

    Parameters
    ----------
    loss : str or ScalarLoss
        φ.
    X : array, memory map, sparse matrix, DataFrame or list of blocks of rows, shape (n, p)
        One row a record. Columns of a frame that are not numbers are refused by name. A Dask array
        is read, clipped and summed by its workers, chunk by chunk; y must be one, too.
    y : array-like, shape (n,), or None
        Targets or labels; None for zero targets. What is masked or missing, in X and y, counts as
        NaN.
    theta : Variable or affine Expression, p entries
        Coefficients.
    intercept : Variable or affine Expression, one entry, optional
        Added to every x_i'θ.
    threshold : float
        M of the Huber loss, in units of y.
    labels : "01", optional
        Labels of a margin loss are cut to [0, 1] and read as 2y − 1. None: booleans are, other
        types are numbers in [−1, 1]. The values of y decide nothing.

    Raises
    ------
    OptionError
        If the loss is unknown, the threshold not positive, or ``labels`` no option of the loss.
    ProblemError
        If shapes disagree, the data are not real, or a memory map is shorter than it says.

    Examples
    --------
    >>> import cvxpy as cp, numpy as np
    >>> theta = cp.Variable(2)
    >>> term = glm_loss("squared", np.eye(2), np.ones(2), theta)
    >>> problem = cp.Problem(cp.Minimize(0.5 * term + cp.norm1(theta)))
    >>> theta.value = np.zeros(2)
    >>> float(term.value)
    2.0
    """
    if isinstance(loss, str):
        if loss not in _RESIDUAL + MARGIN_LOSSES:
            names = ", ".join(_RESIDUAL + MARGIN_LOSSES)
            raise OptionError(f"glm_loss: unknown loss {loss!r}; known are {names}.")
    elif not isinstance(loss, ScalarLoss):
        raise OptionError(
            f"glm_loss: loss must be a name or a ScalarLoss, not {type(loss).__name__}."
        )
    if not (np.isfinite(threshold) and threshold > 0):
        raise OptionError("glm_loss: threshold must be positive and finite.")
    if y is None and loss in MARGIN_LOSSES:
        raise OptionError(f"glm_loss: the loss {loss!r} needs labels y.")
    if labels not in (None, "01"):
        raise OptionError(f'glm_loss: labels must be "01" or None, not {labels!r}.')
    if labels is not None and loss not in MARGIN_LOSSES:
        raise OptionError(
            f"glm_loss: labels belongs to the losses {', '.join(MARGIN_LOSSES)}; the targets of "
            "others are numbers."
        )
    shift = 0.0 if intercept is None else intercept
    return GLMLoss(theta, shift, loss, X, y, float(threshold), labels)
