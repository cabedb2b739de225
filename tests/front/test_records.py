"""What is stated once, and the signature that the verbs share."""

import inspect
import subprocess
import sys

import cvxpy as cp
import numpy as np
import pytest

import cvxqop
from cvxqop.errors import OptionError
from cvxqop.settings import Options, Settings

RNG = np.random.default_rng(0)
X = RNG.uniform(-0.5, 0.5, (300, 3))
Y = X @ [0.5, 0.0, -0.5]
BOUNDS = cvxqop.Bounds(row_norm=1.0, offset=1.0)
W = cp.Variable(3)
G = np.array([[1.0, -1.0, 0.5]])
PROBLEM = cp.Problem(cp.Minimize(cp.sum_squares(X @ W - Y) + cp.norm1(G @ W)))
PAY = {"epsilon": 1.0, "delta": 1e-6}


@pytest.mark.parametrize("adjacency", ["replace_one", "add_remove"])
def test_the_same_release_as_in_the_flat_form(adjacency):
    people = cvxqop.Records(X=X, y=Y, bounds=BOUNDS, public=[G], nonfinite="zero")
    options = {"adjacency": adjacency, "seed": 3, **PAY}
    short = cvxqop.privatize(PROBLEM, private=people, **options)
    flat = cvxqop.privatize(
        PROBLEM, private=[X, Y], bounds=BOUNDS, public=[G], nonfinite="zero", **options
    )
    assert np.array_equal(short[W], flat[W])
    assert short.assumptions == flat.assumptions
    assert str(cvxqop.explain(PROBLEM, people, adjacency=adjacency)) == str(
        cvxqop.explain(PROBLEM, [X, Y], public=[G], adjacency=adjacency)
    )


def test_every_verb_takes_it():
    people = cvxqop.Records(X, y=Y, bounds=BOUNDS)
    plain = cp.Problem(cp.Minimize(cp.sum_squares(X @ W - Y)))
    assert cvxqop.plan(plain, private=people, **PAY).records == 300
    loss = cvxqop.private_loss(cp.sum_squares(X @ W - Y), private=people, **PAY)
    assert loss.hessian.shape == (3, 3)
    solution = plain.solve(method="QOP", private=people, **PAY)
    assert solution[W].shape == (3,)


@pytest.mark.parametrize(
    ("name", "value"), [("bounds", BOUNDS), ("public", [G]), ("nonfinite", "raise")]
)
def test_stating_a_thing_twice_is_refused(name, value):
    people = cvxqop.Records(X=X, y=Y, bounds=BOUNDS, public=[G], nonfinite="zero")
    with pytest.raises(OptionError, match=f"^{name} is stated in the Records and in the call"):
        cvxqop.plan(PROBLEM, private=people, **{**PAY, name: value})


def test_persons_are_stated_with_the_records():
    people = cvxqop.Records(X=X, y=Y, bounds=BOUNDS, persons=np.arange(300) // 3, rows_per_person=3)
    plain = cp.Problem(cp.Minimize(cp.sum_squares(X @ W - Y)))
    assert cvxqop.plan(plain, private=people, **PAY).records == 100
    assert "person" in str(cvxqop.explain(plain, people))


def test_names_and_what_is_shown():
    people = cvxqop.Records(X=X, y=Y, bounds=BOUNDS)
    assert people.X is X
    assert people.y is Y
    assert repr(people) == "Records(X, y)"
    assert repr(cvxqop.Records(X)) == "Records(…)"
    with pytest.raises(AttributeError, match="no array of the name 'z'"):
        _ = people.z
    with pytest.raises(OptionError, match="no array"):
        cvxqop.Records(bounds=BOUNDS)
    with pytest.raises(OptionError, match="'epsilon' is not the name"):
        cvxqop.Records(epsilon=X)


def test_arrays_that_lie_elsewhere_are_for_glm_loss(tmp_path):
    path = tmp_path / "rows.bin"
    X.tofile(path)
    mapped = np.memmap(path, dtype=np.float64, shape=X.shape, mode="r")
    people = cvxqop.Records(X=mapped, y=Y, bounds=BOUNDS)
    problem = cp.Problem(cp.Minimize(cvxqop.glm_loss("squared", people.X, people.y, W)))
    found = cvxqop.privatize(problem, private=people, seed=1, **PAY)[W]
    plain = cp.Problem(cp.Minimize(cvxqop.glm_loss("squared", X, Y, W)))
    assert np.array_equal(
        found, cvxqop.privatize(plain, private=[], bounds=BOUNDS, seed=1, **PAY)[W]
    )


def test_a_memory_map_that_CVXPY_holds_is_private(tmp_path):
    """What is stated as a record is listed, wherever it lies: a map of one axis, and a copy."""
    v = np.memmap(tmp_path / "v.bin", dtype=float, mode="w+", shape=(3,))
    v[:] = [0.0, 0.6, -0.8]
    G = np.memmap(tmp_path / "g.bin", dtype=float, mode="w+", shape=(3, 3))
    plain = cp.sum_squares(X @ W - Y)
    for hidden in (v, v.copy(), G):
        people = cvxqop.Records(X, Y, hidden, bounds=BOUNDS)
        term = cp.sum_squares(hidden @ W) if hidden.ndim == 2 else 1e4 * (hidden @ W)
        problem = cp.Problem(cp.Minimize(plain + term), [cp.norm(W, 2) <= 5])
        with pytest.raises(cvxqop.CvxqopError):
            cvxqop.plan(problem, private=people, **PAY)
    people = cvxqop.Records(X, Y, v, bounds=BOUNDS)
    with pytest.raises(OptionError, match="memory of one that is private"):
        cvxqop.plan(cp.Problem(cp.Minimize(plain)), private=people, anchor=v, **PAY)
    mapped = np.memmap(tmp_path / "x.bin", dtype=float, mode="w+", shape=X.shape)
    mapped[:] = X
    twice = cvxqop.Records(X=mapped, y=Y, bounds=BOUNDS, public=[mapped])
    with pytest.raises(cvxqop.CvxqopError, match="public"):
        cvxqop.plan(cp.Problem(cp.Minimize(cp.sum_squares(mapped @ W - Y))), private=twice, **PAY)


def test_options_are_typed_once():
    assert set(Options.__annotations__) == {f.name for f in Settings.__dataclass_fields__.values()}
    for verb in (cvxqop.privatize, cvxqop.plan, cvxqop.private_loss):
        shown = inspect.signature(verb).parameters
        assert set(Options.__annotations__) <= set(shown)
        assert shown["epsilon"].default is inspect.Parameter.empty
        assert shown["accuracy"].default == 1e-6


def test_a_type_checker_sees_a_wrong_name(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "import cvxpy as cp, cvxqop\n"
        "def run(problem: cp.Problem) -> None:\n"
        "    cvxqop.plan(problem, private=[], epsilom=1.0, delta=1e-6)\n"
        "    cvxqop.plan(problem, private=[], epsilon='1', delta=1e-6)\n"
        "    cvxqop.plan(problem, private=[], epsilon=1.0, delta=1e-6, accuracy=1e-3)\n"
    )
    command = [sys.executable, "-m", "mypy", str(script)]
    out = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    wrong = [line for line in out.splitlines() if "script.py" in line and "error" in line]
    assert any(":3:" in line and "epsilom" in line for line in wrong), out
    assert any(":4:" in line and "epsilon" in line for line in wrong), out
    assert not any(":5:" in line for line in wrong), out
