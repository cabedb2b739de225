"""The paper's constants: 250-digit reference values, and exact calibration is never worse."""

import math

import mpmath
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cvxqop.errors import CalibrationError, OptionError
from cvxqop.privacy.paper import profile as paper
from cvxqop.privacy.wishart import ensemble as wishart


def arguments(**changes):
    base = {
        "smoothness": 1.0,
        "hessian_rank": 1,
        "d": 10,
        "m": 25,
        "epsilon1": 0.5,
        "epsilon2": 0.5,
        "delta1": 1e-6,
        "delta2": 1e-6,
        "delta3": 1e-6,
        "delta4": 1e-6,
        "tau": 1e-3,
        "eta": 1e-3,
    }
    return {**base, **changes}


@pytest.mark.parametrize("index", range(5))
def test_reference(reference, index):
    case = reference["paper_calibration"][index]
    given_ = {
        "smoothness": case["L"],
        "hessian_rank": case["rho"],
        "epsilon1": case["eps1"],
        "epsilon2": case["eps2"],
        **{key: case[key] for key in ("d", "m", "delta1", "delta2", "delta3", "delta4")},
        "tau": case["tau"],
        "eta": case["eta"],
    }
    ours = paper.calibrate(**given_)
    for name in ("alpha", "alpha1", "beta", "sigma2", "sigma_tilde"):
        if name in case:
            assert getattr(ours, name) == pytest.approx(float(case[name]), rel=1e-9)
    published = paper.calibrate(**given_, as_published=True)
    for name in ("alpha1", "sigma2"):
        true = float(case[f"{name}_as_published"])
        assert getattr(published, name) == pytest.approx(true, rel=1e-9)
    ours.require_usable()
    with pytest.raises(CalibrationError, match="published code"):
        published.require_usable()


@given(
    st.integers(1, 40),
    st.floats(0.05, 4.0),
    st.floats(-60.0, -1.0).map(lambda t: 10.0**t),
    st.floats(-60.0, -1.0).map(lambda t: 10.0**t),
)
@settings(max_examples=60, deadline=None)
def test_equations_of_alpha(d, width, delta1, delta3):
    """α and α1 put back into their equations, in 100 digits, α1 far below and far above α."""
    m = d + 1 + width * d
    ours = paper.calibrate(**arguments(d=d, m=m, delta1=delta1, delta3=delta3, tau=0.0, eta=0.0))
    with mpmath.workdps(100):
        M, d1, d3 = mpmath.mpf(m), mpmath.mpf(delta1), mpmath.mpf(delta3)
        q = (M - d + 1) / 2
        D = mpmath.sqrt(mpmath.pi) * mpmath.gamma((M + 1) / 2)
        D /= mpmath.gamma(mpmath.mpf(d) / 2) * mpmath.gamma(q + mpmath.mpf(1) / 2)

        def P(x):
            return mpmath.gammainc(q, 0, x, regularized=True)

        # α is known to 1e-13 of itself, and α1 answers to it: use the exact α for the second.
        exact = mpmath.findroot(
            lambda t: mpmath.log(D * P(mpmath.exp(t) / 2) / d3), mpmath.log(ours.alpha)
        )
        exact = mpmath.exp(exact)
        assert abs(ours.alpha / exact - 1) < 1e-11
        gap = D * (P((exact + mpmath.mpf(ours.alpha1)) / 2) - P(exact / 2))
        assert abs(gap / (d1 * (1 - d3)) - 1) < 1e-9


@given(
    st.integers(1, 300),
    st.floats(0.05, 3.0),
    st.floats(-2.0, 2.0).map(lambda t: 10.0**t),
    st.floats(-10.0, -1.5).map(lambda t: 10.0**t),
    st.floats(0.1, 0.9),
    st.booleans(),
)
@settings(max_examples=40, deadline=None)
def test_exact_is_never_above_the_paper(d, width, epsilon, delta, split, quadratic):
    """Both for the whole (ε1, δ1 + δ3), replace_one, rank one, no release."""
    m = d + 2 + width * d
    ours = paper.calibrate(
        **arguments(
            d=d, m=m, epsilon1=epsilon, epsilon2=0.0, delta1=split * delta, delta2=0.0,
            delta3=(1 - split) * delta, delta4=0.0, tau=0.0, eta=0.0,
        )
    )  # fmt: skip
    try:
        exact = wishart.calibrate(epsilon, delta, m - d + 1, quadratic=quadratic)
    except CalibrationError:
        assert ours.sigma2 > 1e6  # σ² above 10⁶ L is refused by "exact"
        return
    assert exact <= ours.sigma2


def test_published_code_at_large_dimension():
    """d = 150 and more: finite, and far above where double precision of the direct formula ends."""
    for d in (120, 150, 400, 2000):
        ours = paper.calibrate(**arguments(d=d, m=2 * d, epsilon2=0.5))
        assert all(
            math.isfinite(getattr(ours, k))
            for k in ("alpha", "alpha1", "beta", "sigma2", "sigma_tilde")
        )
        published = paper.calibrate(**arguments(d=d, m=2 * d), as_published=True)
        assert published.sigma2 > 1e6 * ours.sigma2


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"m": 11}, "m must exceed d"),
        ({"m": math.nan}, "m must exceed d"),
        ({"hessian_rank": 11}, "hessian_rank"),
        ({"hessian_rank": 0}, "hessian_rank"),
        ({"eta": -1.0}, "eta"),
        ({"tau": math.nan}, "tau"),
        ({"epsilon2": 1.5}, "epsilon2"),
        ({"epsilon1": 0.0}, "epsilon1"),
        ({"delta3": 0.0}, "delta3"),
        ({"delta1": 0.6, "delta3": 0.5}, "below 1"),
        ({"epsilon2": 0.0}, "release"),
        ({"delta4": 0.0}, "delta4"),
        ({"smoothness": 0.0}, "smoothness"),
        ({"d": 0}, "d must be"),
    ],
)
def test_refusals(changes, words):
    with pytest.raises(OptionError, match=words):
        paper.calibrate(**arguments(**changes))
