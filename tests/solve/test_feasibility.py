"""Answers against constraints whose margin is known in closed form, and what solvers may say."""

import subprocess
import sys
from pathlib import Path

import cvxpy as cp
import numpy as np
import pytest
from cvxpy.error import SolverError

from cvxqop.errors import OptionError, ProblemError
from cvxqop.solve import solvers
from cvxqop.solve.engines.conic import solve_conic
from cvxqop.solve.engines.conic_checks import check_solver
from cvxqop.solve.rest.feasibility import ABSOLUTE, RELATIVE, fault
from cvxqop.solve.smooth.quadratic import Quadratic

X = cp.Variable(3, name="x")
T = cp.Variable(name="t")
M = cp.Variable((2, 2), name="M")
W = cp.Variable((2, 3), name="W")

# A constraint, a point on its boundary, the variable to move, and the direction out of the set.
BOUNDARIES = {
    "inequality": (X <= [1, 2, 3], {X: [1.0, 2.0, 3.0]}, X, [0, 0, 1]),
    "greater": (X >= -1, {X: [-1.0, 0.0, 5.0]}, X, [-1, 0, 0]),
    "equality": (cp.sum(X) == 3, {X: [1.0, 1.0, 1.0]}, X, [1, 0, 0]),
    "quadratic": (cp.sum_squares(X) <= 9, {X: [1.0, 2.0, 2.0]}, X, [1, 2, 2]),
    "norm": (cp.norm2(X) <= T, {X: [1.0, 2.0, 2.0], T: 3.0}, T, -1),
    "soc": (cp.SOC(T, X), {X: [1.0, 2.0, 2.0], T: 3.0}, T, -1),
    "soc axis 0": (cp.SOC(W[0], W), {W: [[0.0] * 3, [0.0] * 3]}, W, [[0] * 3, [1, 0, 0]]),
    "soc axis 1": (
        cp.SOC(M[:, 0], W, axis=1),
        {M: [[5.0, 0.0], [13.0, 0.0]], W: [[3.0, 4.0, 0.0], [0.0, 5.0, 12.0]]},
        W,
        [[0, 0, 0], [0, 1, 0]],
    ),
    "psd": (M >> 0, {M: [[1.0, 2.0], [2.0, 4.0]]}, M, [[-1, 0], [0, -1]]),
    "nonneg": (cp.constraints.NonNeg(X - 1), {X: [1.0, 2.0, 1.0]}, X, [-1, 0, 0]),
    "nonpos": (X[0] - 2 <= 0, {X: [2.0, 9.0, 9.0]}, X, [1, 0, 0]),
    "zero": (cp.constraints.Zero(X[1] - 2), {X: [0.0, 2.0, 0.0]}, X, [0, -1, 0]),
    "exp": (cp.ExpCone(X[0], X[1], X[2]), {X: [2.0, 2.0, 2.0 * np.e]}, X, [0, 0, -1]),
    "exp at zero": (cp.ExpCone(X[0], X[1], X[2]), {X: [-1.0, 0.0, 0.0]}, X, [0, -1, 0]),
    "power": (
        cp.constraints.PowCone3D(X[0], X[1], X[2], 0.25),
        {X: [16.0, 1.0, -2.0]},
        X,
        [0, 0, -1],
    ),
    "power of several": (
        cp.constraints.PowConeND(X, T, np.array([0.25, 0.25, 0.5])),
        {X: [16.0, 1.0, 4.0], T: 4.0},
        T,
        1,
    ),
    "logarithm": (cp.log(X[0]) >= 1, {X: [np.e, 0.0, 0.0]}, X, [-1, 0, 0]),
    "kronecker": (cp.kron(np.eye(2), M) <= 1, {M: [[1.0, 0.0], [0.0, 0.0]]}, M, [[1, 0], [0, 0]]),
}


@pytest.mark.parametrize("units", [1.0, 1e4])
@pytest.mark.parametrize("name", BOUNDARIES)
def test_the_boundary_is_feasible_and_a_thousandth_beyond_is_not(name, units):
    constraint, point, moved, direction = BOUNDARIES[name]
    values = {variable: np.asarray(value, float) for variable, value in point.items()}
    outside = {**values, moved: values[moved] + 1e-2 * np.asarray(direction, float)}
    assert fault(values, None, [constraint]) == ""
    assert fault(outside, None, [constraint]) == "violates a constraint"
    # The same constraint written in other units.
    if name in ("inequality", "greater", "equality", "kronecker"):
        scaled = type(constraint)(units * constraint.args[0], units * constraint.args[1])
        assert fault(values, None, [scaled]) == ""
        assert fault(outside, None, [scaled]) == "violates a constraint"


@pytest.mark.parametrize("units", [1e-3, 1.0, 1e9])
def test_the_tolerance_is_relative_to_the_whole_answer(units):
    theta = cp.Variable(2)
    inside = {theta: units * np.array([1.0, -0.5 * RELATIVE])}
    outside = {theta: units * np.array([1.0, -2.0 * RELATIVE]) - 2.0 * ABSOLUTE}
    assert fault(inside, None, [theta >= 0]) == ""
    assert fault(outside, None, [theta >= 0]) != ""


@pytest.mark.parametrize(
    ("attributes", "good", "bad"),
    [
        ({"nonneg": True}, [[0, 1], [2, 3]], [[-0.1, 1], [2, 3]]),
        ({"nonpos": True}, [[0, -1], [-2, -3]], [[0.1, 0], [0, 0]]),
        ({"symmetric": True}, [[0, 1], [1, 3]], [[0, 1], [2, 3]]),
        ({"PSD": True}, [[1, 1], [1, 1]], [[1, 2], [2, 1]]),
        ({"NSD": True}, [[-1, 1], [1, -1]], [[-1, 2], [2, -1]]),
        ({"diag": True}, [[1, 0], [0, 2]], [[1, 1], [0, 2]]),
        ({"bounds": [-1, 2]}, [[-1, 2], [0, 0]], [[-1, 3], [0, 0]]),
    ],
)
def test_attributes_are_constraints(attributes, good, bad):
    variable = cp.Variable((2, 2), **attributes)
    assert fault({variable: np.asarray(good, float)}, None, []) == ""
    assert fault({variable: np.asarray(bad, float)}, None, []) != ""


def test_the_domain_of_the_regulariser_counts():
    assert fault({X: np.array([0.0, 1.0, 1.0])}, -cp.sum(cp.entr(X)), []) == ""
    assert fault({X: np.array([-1.0, 1.0, 1.0])}, -cp.sum(cp.entr(X)), []) != ""


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_not_finite(bad):
    assert fault({X: np.array([0.0, bad, 0.0])}, None, []) == "is not finite"
    assert fault({X: np.zeros(2)}, None, []) == "is of another shape than its variable"


def test_nothing_is_written():
    X.value = np.array([7.0, 8.0, 9.0])
    fault({X: np.zeros(3)}, cp.norm1(X), [X <= 1, cp.norm2(X) <= 2])
    assert X.value.tolist() == [7.0, 8.0, 9.0]
    X.value = None


def test_a_cone_that_cannot_be_checked_is_refused_beforehand():
    cone = cp.constraints.RelEntrConeQuad(X, X + 1, X + 2, 2, 2)
    with pytest.raises(ProblemError, match="RelEntrConeQuad"):
        check_solver("CLARABEL", {}, [X], None, [cone])


def test_what_cvxpy_cannot_evaluate_is_refused_beforehand(monkeypatch):
    constraint = cp.exp(X) <= 2
    monkeypatch.setattr(cp.exp, "numeric", lambda *_: 1 / 0)
    assert fault({X: np.zeros(3)}, None, [constraint]) == "cannot be checked against a constraint"
    with pytest.raises(ProblemError, match="cannot evaluate"):
        check_solver("CLARABEL", {}, [X], None, [constraint])


class Lying:
    """A solver's own result with another x."""

    def __init__(self, inner, change):
        self.inner, self.change = inner, change

    def __getattr__(self, name):
        value = getattr(self.inner, name)
        return self.change(np.array(value)).tolist() if name == "x" else value


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda x: x * np.nan, "is not finite"),
        (lambda x: np.where(np.arange(len(x)) % 2, x, np.inf), "is not finite"),
        (lambda x: x + 10.0, "violates a constraint"),
    ],
)
def test_a_status_is_not_believed(monkeypatch, change, words):
    from cvxpy.reductions.solvers.conic_solvers.clarabel_conif import CLARABEL

    honest = CLARABEL.solve_via_data
    monkeypatch.setattr(
        CLARABEL, "solve_via_data", lambda self, *a, **k: Lying(honest(self, *a, **k), change)
    )
    theta = cp.Variable(2)
    f = Quadratic(np.eye(2), np.array([-3.0, 0.5]), np.zeros(2))
    # A set without a known projection, which would repair the answer.
    constraints = [cp.norm2(np.array([[1.0, 2.0], [3.0, 4.0]]) @ theta) <= 1]
    with pytest.raises(SolverError, match=words) as caught:
        solve_conic(f, [theta], None, constraints, solver="CLARABEL")
    assert not any(c.isdigit() for c in str(caught.value))
    assert caught.value.__suppress_context__


@pytest.mark.parametrize("option", ["polish", "polishing"])
def test_osqp_says_whether_it_polished(option):
    with pytest.raises(OptionError, match=option):
        check_solver("OSQP", {option: True}, [X], None, [X <= 1])
    check_solver("OSQP", {"polishing": False}, [X], None, [X <= 1])


SILENT = """
import sys
{prelude}
import cvxpy as cp, numpy as np
from cvxqop.solve.engines.conic import solve_conic
from cvxqop.solve.smooth.quadratic import Quadratic
def attempt(H, rest, constraints, options):
    theta = cp.Variable(3)
    f = Quadratic(H, np.array([-3.0, 0.5, 1.0]), np.zeros(3))
    r = rest(theta)
    try:
        solve_conic(f, [theta], r, constraints(theta), solver={solver!r}, solver_options=options)
    except Exception:
        pass
I = np.eye(3)
none = lambda t: None
attempt(I, none, lambda t: [], {{}})
attempt(I, none, lambda t: [t >= -50], {{}})
attempt(I, cp.norm1, lambda t: [t <= 1], {{}})
attempt(I, none, lambda t: [t <= 1, t >= 2], {{}})
attempt(I, none, lambda t: [t[0] == 0, 2 * t[0] == 0, cp.norm1(t) <= 0], {{}})
attempt(I, lambda t: -1e3 * t[0], lambda t: [], {{}})
attempt(np.diag([1e-14, 1.0, 1e14]), cp.norm1, lambda t: [t[1] + t[2] <= 1e-9], {{}})
attempt(I, cp.norm1, lambda t: [t <= 1], {{"no_such_option": 1}})
attempt(I, cp.norm1, lambda t: [t <= 1], {few!r})
"""
FEW = {
    "CLARABEL": {"max_iter": 1},
    "OSQP": {"max_iter": 1},
    "SCS": {"max_iters": 1},
    "HIGHS": {"time_limit": 1e-9},
    "SCIPY": {"maxiter": 1},
}


@pytest.mark.parametrize("prelude", ["", "sys.stdout = None"])
@pytest.mark.parametrize("solver", sorted(set(cp.installed_solvers()) | {"HIGHS"}))
def test_solvers_print_nothing(solver, prelude):
    """In a process of its own: some print once, at their first use."""
    if solver not in cp.installed_solvers():
        pytest.skip(f"{solver} is not installed")
    code = SILENT.format(solver=solver, few=FEW.get(solver, {}), prelude=prelude)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_no_file_descriptor_is_touched():
    for path in Path(solvers.__file__).parents[1].rglob("*.py"):
        for word in ("dup2", "os.devnull", "redirect_stdout", "sys.stdout ="):
            assert word not in path.read_text(), path.name
