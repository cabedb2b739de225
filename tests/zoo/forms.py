"""A form: a problem of convex ERM as people write it, what is hoped of it, and how it is built.

The code of a form is text, so that the page of forms shows what the tests run. It sees the arrays
of `data`, the variables below, and NumPy, SciPy's sparse arrays and CVXPY as np, sp and cp.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import cvxpy as cp
import numpy as np
import scipy.sparse as sp

import cvxqop

HOPES = ("released", "bounded", "smoothed", "refused")
TRUTH = np.array([1.0, -1.0, 0.0, 0.5])
SIZE, FULL_SIZE = 300, 5000


@dataclass(frozen=True)
class Form:
    """One problem.

    Attributes
    ----------
    id, group, name : str
        A short name that is unique, the table that it stands in, and what people call it.
    objective : str
        Code of the objective: an expression is minimised.
    constraints : str
        Code of the constraints, separated by commas.
    variables : dict
        Shapes of variables that are not among the usual ones.
    private, public, bounds, options : str
        Code of what is stated: arrays of the two lists, arguments of Bounds, other options.
    hope : {"released", "bounded", "smoothed", "refused"}
        "bounded" is refused without what `without` takes away; "smoothed" without smoothing="auto".
    without : dict
        Fields of the form before its remedy was followed.
    says : str
        Pattern of what the refusal says.
    remedy : dict
        Fields of a refused form once it is rewritten as the refusal says.
    argument, weight, middle : str, str, float
        Of a smoothed φ: the text of its argument t, its weight, and the mean of its slopes: with a
        slack q a record, weight · Σ (q²/(2h) − middle · q) and t + q for t make the smoothed form.
    size : int
        Number of records; 0 is the usual one.
    """

    id: str
    group: str
    name: str
    objective: str
    constraints: str = ""
    variables: dict[str, Any] = field(default_factory=dict)
    private: str = "X, y"
    public: str = ""
    bounds: str = "row_norm=1, offset=1.5"
    options: str = ""
    hope: str = "released"
    without: dict[str, str] = field(default_factory=dict)
    says: str = ""
    remedy: dict[str, Any] = field(default_factory=dict)
    argument: str = ""
    weight: str = "1"
    middle: float = 0.0
    size: int = 0

    def rewritten(self) -> Form:
        """The form with its remedy."""
        return replace(self, hope="released", remedy={}, without={}, **self.remedy)

    def before(self) -> Form:
        """The form before its remedy."""
        if self.hope == "smoothed":
            return replace(self, options=self.options.replace('smoothing="auto"', "").strip(" ,"))
        return replace(self, **self.without)

    @property
    def stated(self) -> list[str]:
        """What a caller states beside the private arrays."""
        lists = [f"public=[{self.public}]"] if self.public else []
        return [f"Bounds({self.bounds})", *lists, *([self.options] if self.options else [])]


def group(name: str, **usual: Any) -> Callable[..., Form]:
    """A maker of forms of one group, with what is usual there."""
    return lambda id, title, objective, constraints="", **own: Form(
        id, name, title, objective, constraints, **{**usual, **own}
    )


def smoothed(make: Callable[..., Form], **usual: Any) -> Callable[..., Form]:
    """A maker of forms that need smoothing."""
    return partial(make, hope="smoothed", options='smoothing="auto"', **usual)


@dataclass(frozen=True)
class Built:
    """A problem with its options, and the scope that its code was run in."""

    problem: cp.Problem
    options: dict[str, Any]
    scope: dict[str, Any]


def scope(form: Form, full: bool) -> dict[str, Any]:
    """Arrays and variables, made anew."""
    names = {
        **data(form.size or (FULL_SIZE if full else SIZE)),
        "np": np,
        "sp": sp,
        "cp": cp,
        "cvxqop": cvxqop,
        "Bounds": cvxqop.Bounds,
    }
    names |= {
        "A": cp.Parameter(names["X"].shape, value=names["X"]),
        "c0": cp.Parameter(names["n"], value=names["y"]),
    }
    shapes = {"w": 4, "b": (), "a": (), "W": (4, 3), "V": (4, 1), "t": 2, "mu": 3, "mu1": (1, 3)}
    shapes |= form.variables
    made = {
        name: cp.Variable(**{"name": name, **shape})
        if isinstance(shape, dict)
        else cp.Variable(names[shape] if isinstance(shape, str) else shape, name=name)
        for name, shape in shapes.items()
    }
    return {**names, **made}


def build(form: Form, *, full: bool = False) -> Built:
    """The problem of a form."""
    names = scope(form, full)
    constraints = eval(f"[{form.constraints}]", names)
    options = {
        "private": eval(f"[{form.private}]", names),
        "public": eval(f"[{form.public}]", names),
        "bounds": eval(f"Bounds({form.bounds})", names),
        **eval(f"dict({form.options})", names),
    }
    return Built(cp.Problem(_goal(form.objective, names), constraints), options, names)


def build_smoothed(form: Form, h: float, *, full: bool = False) -> cp.Problem:
    """The problem with the Moreau envelope of width h, as a problem with one slack a record."""
    names = scope(form, full)
    names |= {"h": h, "q": cp.Variable(names["n"])}
    assert form.argument in form.objective, form.id
    objective = form.objective.replace(form.argument, f"({form.argument} + q)")
    penalty = f"({form.weight}) * cp.sum(cp.square(q) / (2 * h) - {form.middle} * q)"
    goal = _goal(objective, names)
    assert isinstance(goal, cp.Minimize), form.id
    whole = cp.Minimize(goal.expr + eval(penalty, names))
    return cp.Problem(whole, eval(f"[{form.constraints}]", names))


def _goal(code: str, names: dict[str, Any]) -> Any:
    found = eval(code, names)
    return found if isinstance(found, cp.Minimize | cp.Maximize) else cp.Minimize(found)


def data(n: int) -> dict[str, Any]:
    """The arrays that forms are written with, one record a row."""
    rng = np.random.default_rng(12)
    X = rng.uniform(-0.5, 0.5, (n, 4))
    y = X @ TRUTH + 0.1 * rng.uniform(-1, 1, n)
    s = np.where(rng.uniform(size=n) < 1 / (1 + np.exp(-4 * X @ TRUTH)), 1.0, -1.0)
    rate = X @ [0.8, 0.0, -0.4, 0.2]
    m = rng.integers(1, 6, n).astype(float)
    time = rng.exponential(np.exp(-X @ TRUTH))
    X3 = np.column_stack([X[:, :3] + 0.1 * rng.uniform(-1, 1, (n, 3))])
    weights = np.array([[1.5, -1.0, 0.0], [0.0, 2.0, -1.0], [-2.0, 0.0, 1.0], [0.5, 0.5, 0.0]])
    classes = np.argmax(2 * X @ weights + rng.gumbel(size=(n, 3)), axis=1)
    latent = 4 * X @ TRUTH + rng.logistic(size=n)
    home, away = rng.integers(5, size=(2, n))
    away = np.where(home == away, (away + 1) % 5, away)
    strength = np.array([1.0, 0.5, 0.0, -0.5, -1.0])
    won = rng.uniform(size=n) < 1 / (1 + np.exp(strength[away] - strength[home]))
    place = rng.uniform(0, 1, n)
    P = rng.uniform(0.2, 0.5, (n, 4))
    return {
        "n": n,
        "ones": np.ones((n, 1)),
        "X": X,
        "y": y,
        # Signs, and the same as 0 and 1.
        "s": s,
        "z": (s + 1) / 2,
        # Counts; hits of m trials; times that end at 2, and whether the event came before.
        "k": np.minimum(rng.poisson(np.exp(rate)), 5).astype(float),
        "m": m,
        "hits": rng.binomial(m.astype(int), 1 / (1 + np.exp(-2 * X @ TRUTH))).astype(float),
        "time": np.minimum(time, 2.0),
        "event": (time < 2).astype(float),
        "order": np.argsort(time),
        # Positive rows, and counts of a rate that is linear in them.
        "P": P,
        "kp": np.minimum(rng.poisson(P @ [1.0, 2.0, 0.5, 1.0]), 8).astype(float),
        # Several outputs, classes as rows of 0 and 1, levels as signs.
        "Y": X @ weights / 2 + 0.1 * rng.uniform(-1, 1, (n, 3)),
        "Z": np.eye(3)[classes],
        # Two numbers of a cell of a table of 4 by 3, and the same as a row of 0 and 1.
        "i": (i := rng.integers(4, size=n)),
        "j": classes,
        "IJ": np.eye(12)[3 * i + classes],
        "levels": np.where(latent[:, None] <= [-1.0, 1.0], 1.0, -1.0),
        "seen": (rng.uniform(size=(n, 3)) < 0.7).astype(float),
        # Winner minus loser.
        "D": np.where(won[:, None], 1.0, -1.0) * (np.eye(5)[home] - np.eye(5)[away]),
        # A basis of hats on [0, 1], and targets that rise.
        "H": np.maximum(0, 1 - np.abs(place[:, None] - np.linspace(0, 1, 6)) * 5),
        "yh": 0.8 * np.sqrt(place) + 0.1 * rng.uniform(-1, 1, n),
        # Points, moments of numbers in [0, 1], returns, likelihoods.
        "Q": X3 * [1.0, 0.6, 0.3],
        "F": np.einsum("ij,ik->ijk", X3, X3).reshape(n, 9),
        "T": np.stack([(u := rng.beta(2, 3, n)), u**2, u**3], axis=1),
        "G": np.stack([(g := np.linspace(0, 1, 40)), g**2, g**3], axis=1),
        "r": (r := 0.05 + rng.uniform(-0.5, 0.5, (n, 4)) * [0.4, 0.6, 0.8, 1.0]),
        "index": r @ [0.4, 0.3, 0.2, 0.1] + 0.1 * rng.uniform(-1, 1, n),
        "L": rng.uniform(0.2, 1.0, (n, 4)) + np.array([0.3, 0.0, 0.1, 0.0]),
        # A kernel of a few records.
        "K": np.exp(-np.square(X[:60, None] - X[None, :60]).sum(axis=2)),
        # Weights: public and private ones.
        "v": rng.uniform(0.5, 1.5, n),
        "c": np.where(s > 0, 2.0, 1.0),
    }
