"""Randomness: the laws of the secure variates, and which streams are shared."""

import numpy as np
import pytest
from scipy.stats import chi2, kstest, norm

from cvxqop.errors import OptionError
from cvxqop.privacy.noise import Randomness, SecureNoise


def test_secure_normals():
    """Kolmogorov-Smirnov on 2·10⁵ draws; rejects at p < 1e-9."""
    x = SecureNoise().standard_normal((400, 500))
    assert x.shape == (400, 500)
    assert kstest(x.ravel(), norm.cdf).pvalue > 1e-9
    assert np.unique(x).size == x.size


@pytest.mark.parametrize("df", [0.3, 1.0, 7.5, 1e5])
def test_secure_chi_square(df):
    x = SecureNoise().chisquare(np.full(20_000, df))
    assert kstest(x, chi2(df).cdf).pvalue > 1e-9
    assert np.all(x > 0.0)


def test_secure_tails_are_resolved_far_beyond_one_word(monkeypatch):
    """All-zero bytes give the smallest uniform, 2⁻¹³⁰, and a finite variate."""
    monkeypatch.setattr("os.urandom", lambda size: bytes(size))
    x = SecureNoise().standard_normal(1)[0]
    assert norm.logcdf(x) == pytest.approx(-130 * np.log(2), rel=1e-12)
    h = SecureNoise().chisquare([5.0])[0]
    assert chi2.cdf(h, 5.0) == pytest.approx(2.0**-130, rel=1e-9)


def test_streams():
    one, two = Randomness(11), Randomness(11)
    first = [one.fresh()[0].standard_normal(3) for _ in range(2)]
    assert np.array_equal(first[0], two.fresh()[0].standard_normal(3))
    assert not np.any(first[0] == first[1])
    mechanism, sampling = Randomness(11).fresh()
    assert not np.any(mechanism.standard_normal(3) == sampling.standard_normal(3))
    assert Randomness(11).reproducible
    assert not Randomness().reproducible
    secure = [Randomness().fresh()[0].standard_normal(3) for _ in range(2)]
    assert not np.any(secure[0] == secure[1])


def test_a_numpy_generator_is_taken():
    one = Randomness(np.random.default_rng(4)).fresh()[0].standard_normal(2)
    two = Randomness(np.random.default_rng(4)).fresh()[0].standard_normal(2)
    assert np.array_equal(one, two)


@pytest.mark.parametrize("seed", [-1, 1.5, "7", True])
def test_bad_seeds(seed):
    with pytest.raises(OptionError, match="seed"):
        Randomness(seed)
