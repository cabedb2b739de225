"""The suite as a whole, in reduced size: rows, risks, table, exit code; laws of all draws."""

import pickle
from dataclasses import replace

import numpy as np
import pytest

import cvxqop
from cvxqop.audit import draws_follow_law, suite
from cvxqop.audit.__main__ import main
from cvxqop.audit.neighbours import PAIRS
from cvxqop.audit.public_data import (
    BOUNDED,
    CENTRED,
    COLUMNS,
    CONSTRAINED,
    WEIGHTED,
    public_rows,
)
from cvxqop.audit.table import table
from cvxqop.privacy.mechanism import Sensitivity

WORST = {
    "aligned", "opposite", "zero record", "at the norm bound", "far beyond the bounds", "n = 1",
    "n < d", "intercept",
}  # fmt: skip


def test_every_mechanism_adjacency_and_loss_meets_every_pair():
    rows = suite.rows()
    seen = {(row.mechanism, row.adjacency, row.loss.name, row.pair.name) for row in rows}
    assert len(seen) == len(rows)
    for adjacency in ("replace_one", "add_remove"):
        for loss, mechanisms in {
            "squared": ("wishart", "gaussian", "gaussian, 2 stages"),
            "logistic": ("wishart", "gaussian", "linear"),
            "huber": ("wishart", "gaussian", "linear"),
        }.items():
            for mechanism in mechanisms:
                assert {s[3] for s in seen if s[:3] == (mechanism, adjacency, loss)} >= WORST


def test_losses_meet_the_mechanisms_that_take_them():
    seen = {(r.mechanism, r.adjacency, r.loss.name.removesuffix(", pushed")) for r in suite.rows()}
    for adjacency in ("replace_one", "add_remove"):
        for loss, mechanisms in {
            "multinomial, 2 classes": ("wishart", "gaussian", "linear"),
            "multinomial, 3 classes": ("wishart", "linear"),
            "declared, d = 1": ("wishart", "linear"),
            "declared, rank 2": ("wishart", "linear"),
            "declared, quadratic": ("wishart", "gaussian"),
            "declared, no guard": ("wishart, m = 3.5",),
            "absolute value, smoothed": ("wishart", "gaussian", "linear"),
            "Poisson on a range": ("wishart", "gaussian"),
            "Poisson on a ball": ("linear",),
        }.items():
            for mechanism in mechanisms:
                assert (mechanism, adjacency, loss) in seen


def test_public_data_meet_the_mechanisms_whose_noise_they_set():
    """C and its noise go together in the linear mechanism; numbers of records are public under
    replace_one only."""
    seen = {(r.mechanism, r.adjacency, r.loss.name) for r in suite.rows()}
    for adjacency in ("replace_one", "add_remove"):
        for loss in (CONSTRAINED, *BOUNDED, CENTRED):
            assert ("linear", adjacency, loss.name) in seen
    for loss in (*WEIGHTED, *COLUMNS):
        for mechanism in ("wishart", "gaussian", "linear"):
            quadratic = loss.name.startswith("squared")
            there = (
                mechanism != "linear"
                if quadratic
                else (mechanism, loss) != ("gaussian", COLUMNS[1])
            )
            assert ((mechanism, "replace_one", loss.name) in seen) == there
            assert (mechanism, "add_remove", loss.name) not in seen


@pytest.mark.parametrize("adjacency", ["replace_one", "add_remove"])
def test_what_is_public_does_not_differ_between_neighbours(adjacency):
    for row in public_rows(adjacency):
        stated = [row.loss.state(data)[2:] for data in row.pair.data(adjacency)]
        if row.loss != CONSTRAINED:
            for one, other in zip(*(lists[0] for lists in stated), strict=True):
                np.testing.assert_array_equal(*(getattr(a, "value", a) for a in (one, other)))


def test_the_record_that_differs_has_the_largest_public_numbers():
    (_, y), _ = PAIRS[1].data("replace_one")
    for loss in (*WEIGHTED, *COLUMNS):
        ((numbers,),) = loss.state((np.ones((len(y), 1)), y))[2:]
        assert np.argmax(numbers) == len(y) - 1


def test_rows_reach_other_processes():
    names = [row.loss.name for row in suite.rows()]
    assert [row.loss.name for row in pickle.loads(pickle.dumps(suite.rows()))] == names


def test_pairs_are_neighbours():
    for row in suite.rows():
        (X, y), (X2, y2) = row.pair.data(row.adjacency)
        if row.adjacency == "add_remove":
            assert len(X2) == len(X) + 1
            X2, y2 = X2[:-1], y2[:-1]
        else:
            assert X.shape == X2.shape
        differ = np.any(X != X2, axis=1) | (y != y2)
        assert differ.sum() == (row.adjacency == "replace_one")


def test_the_false_alarm_rate_is_below_one_in_a_million():
    """The risks of all tests add up to FALSE_ALARM, whatever rows are chosen."""
    assert suite.FALSE_ALARM < 1e-6
    rows = suite.rows()
    risk = suite.FALSE_ALARM / sum(row.tests for row in rows)
    chance = 0.0
    bare = (row for row in rows if not row.law and row.mechanism == "linear")
    tried = [*rows[:3], next(bare)]
    for row in tried:
        found = suite.audit(row, draws=40, risk=risk, seed=1)
        parts = [part for part in (found.law, found.sampled) if part is not None]
        assert len(parts) == row.tests
        chance += sum(1.0 - part.confidence for part in parts)
    assert chance == pytest.approx(risk * sum(row.tests for row in tried), rel=1e-6)


def test_the_quick_suite_passes(capsys, monkeypatch):
    kept = [row for row in suite.rows(quick=True) if row.adjacency == "add_remove"][::3]
    monkeypatch.setattr(suite, "rows", lambda quick: kept)
    code = main(["--quick", "--draws", "200", "--processes", "1", "--seed", "3"])
    printed = capsys.readouterr().out
    assert f"All {len(kept)} rows pass." in printed
    assert "s; worker processes: 1." in printed
    assert code == 0


def test_a_failing_row_is_named_and_sets_the_exit_code(capsys, monkeypatch):
    sound = next(row for row in suite.rows() if row.mechanism == "gaussian")
    broken = replace(sound, options={"solver": "NO SUCH SOLVER"})
    monkeypatch.setattr(suite, "rows", lambda quick: [broken])
    assert main(["--draws", "40", "--processes", "1"]) == 1
    printed = capsys.readouterr().out
    assert "FAIL OptionError" in printed
    assert "1 of 1 rows FAIL." in printed


def test_wrong_options_of_the_command_are_refused(capsys):
    with pytest.raises(SystemExit):
        main(["--draws", "3"])
    assert "--draws" in capsys.readouterr().err


def test_the_table_states_the_risk():
    found = [suite.Finding(row) for row in suite.rows()]
    text = table(found, draws=100, seed=None)
    assert "at most 5e-07" in text
    assert text.count("\n| ") == len(found) + 2


MECHANISMS = (cvxqop.Wishart(), cvxqop.Gaussian(), cvxqop.Gaussian(stages=2), cvxqop.Linear())


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=["wishart", "gaussian", "stages", "linear"])
@pytest.mark.parametrize("dimension", [1, 3])
@pytest.mark.parametrize("seed", [None, 5])
def test_draws_follow_their_law(mechanism, dimension, seed):
    """Both sources of randomness; false alarm 1e-8 each."""
    quadratics = (True, False) if getattr(mechanism, "stages", 1) == 1 else (True,)
    for quadratic in quadratics:
        sensitivity = Sensitivity(
            dimension, 1.0, 0.5, quadratic, "add_remove", gradient=1.0, offset=0.5
        )
        calibrated = mechanism.calibrate(1.0, 1e-3, sensitivity, accuracy=None)
        law = draws_follow_law(calibrated, draws=2000, confidence=1 - 1e-8, seed=seed)
        assert law.holds
        assert law.worst[1] <= law.limit


def test_dependent_draws_are_caught():
    """A guard along the first axis of S where S is small: each law alone is right."""
    sensitivity = Sensitivity(2, 1.0, 0.5, True, "add_remove")
    sound = cvxqop.Wishart().calibrate(1.0, 1e-3, sensitivity)

    class Dependent(type(sound)):
        def draw(self, noise):
            draw = super().draw(noise)
            least = np.linalg.eigh(draw.curvature)[1][:, 0]
            sign = np.sign(noise.standard_normal(1))
            return replace(draw, guard=sign * np.linalg.norm(draw.guard) * least)

    broken = Dependent(sensitivity, sound.sigma2, sound.degrees_of_freedom, sound.guard_scale)
    law = draws_follow_law(broken, draws=4000, confidence=1 - 1e-8, seed=1)
    assert law.distances["guard 0, entry 0"] <= law.limit
    assert law.distances["x'Sx"] > law.limit
