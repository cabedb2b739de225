"""Constants that are choices of utility: with any value of them the profile stays within δ."""

import pytest

from cvxqop.privacy import release, shares, utility
from cvxqop.privacy.gaussian import calibrated as calibrated_gaussian
from cvxqop.privacy.gaussian import options as gaussian
from cvxqop.privacy.gaussian import truncated_choice
from cvxqop.privacy.gaussian.options import Gaussian
from cvxqop.privacy.linear.options import Linear
from cvxqop.privacy.mechanism import Sensitivity
from cvxqop.privacy.wishart.options import Wishart

OTHERS = {
    "RELEASE_PART": ((release, gaussian, utility), (2.0, 60.0)),
    "CURVATURE_WEIGHT": ((shares,), (0.01, 20.0)),
    "STEPS": ((calibrated_gaussian,), (0.01, 50.0)),
    "TAIL_SHARE": ((truncated_choice,), (0.02, 0.8)),
}


def calibrated(quadratic, rank):
    bounds = Sensitivity(
        dimension=4, smoothness=1.0, anchor_gradient=0.7, quadratic=quadratic,
        adjacency="replace_one", hessian_rank=rank, gradient=2.0,
    )  # fmt: skip
    mechanisms = [Wishart(), Linear()]
    mechanisms += [Gaussian()] if quadratic or rank == 1 else []
    # Anew, and not as it is remembered of other constants.
    anew = [type(m).calibrate.__wrapped__ for m in mechanisms]
    return [
        calibrate(m, 1.0, 1e-6, bounds, accuracy=1e-6)
        for calibrate, m in zip(anew, mechanisms, strict=True)
    ]


@pytest.mark.parametrize("rank", [1, 2])
@pytest.mark.parametrize("quadratic", [False, True])
@pytest.mark.parametrize("name", OTHERS)
def test_privacy_does_not_depend_on_them(name, quadratic, rank, monkeypatch):
    modules, values = OTHERS[name]
    for value in values:
        for module in modules:
            monkeypatch.setattr(module, name, value)
        for mechanism in calibrated(quadratic, rank):
            assert float(mechanism.profile(1.0)) <= 1e-6, mechanism.title


@pytest.mark.parametrize("name", OTHERS)
def test_each_of_them_changes_something(name, monkeypatch):
    modules, values = OTHERS[name]
    numbers = []
    for value in values:
        for module in modules:
            monkeypatch.setattr(module, name, value)
        both = [*calibrated(False, 1), *calibrated(True, 1)]
        numbers.append([mechanism.describe() for mechanism in both])
    assert numbers[0] != numbers[1]
