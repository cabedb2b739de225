"""Calibrations that are remembered: the same as new ones, shared by equal arguments alone."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields, replace

import numpy as np
import pytest

from cvxqop.privacy.gaussian.options import Gaussian
from cvxqop.privacy.linear.options import Linear
from cvxqop.privacy.mechanism import Sensitivity
from cvxqop.privacy.wishart.options import Wishart

BOUNDS = Sensitivity(
    dimension=5, smoothness=1.0, anchor_gradient=0.5, quadratic=False, adjacency="add_remove",
    gradient=1.5,
)  # fmt: skip
OPTIONS = [Wishart(), Gaussian(), Linear()]
IMMUTABLE = (bool, int, float, str, type(None))


def same(one, two):
    return one.describe() == two.describe()


@pytest.mark.parametrize("options", OPTIONS, ids=lambda o: type(o).__name__)
def test_equal_arguments_share_a_mechanism_and_others_do_not(options):
    first = options.calibrate(1.0, 1e-6, BOUNDS, radius=2.0)
    equal = replace(options)
    assert equal.calibrate(1.0, 1e-6, replace(BOUNDS), radius=2.0) is first
    anew = type(options).calibrate.__wrapped__
    assert same(anew(options, 1.0, 1e-6, BOUNDS, radius=2.0), first)
    for epsilon, delta, bounds, radius in (
        (1.5, 1e-6, BOUNDS, 2.0),
        (1.0, 1e-7, BOUNDS, 2.0),
        (1.0, 1e-6, replace(BOUNDS, smoothness=1.1), 2.0),
        (1.0, 1e-6, BOUNDS, 0.5),
    ):
        other = options.calibrate(epsilon, delta, bounds, radius=radius)
        assert not same(other, first)
        assert same(other, anew(options, epsilon, delta, bounds, radius=radius))


@pytest.mark.parametrize("options", OPTIONS, ids=lambda o: type(o).__name__)
def test_nothing_in_a_mechanism_can_be_changed(options):
    mechanism = options.calibrate(1.0, 1e-6, BOUNDS, accuracy=1e-6)
    held = [mechanism, mechanism.sensitivity, mechanism.release]
    for one in held:
        assert type(one).__dataclass_params__.frozen
        for field in fields(one):
            value = getattr(one, field.name)
            parts = value if isinstance(value, tuple) else (value,)
            assert all(isinstance(part, IMMUTABLE) or part in held for part in parts)


def test_numbers_of_other_types_leave_no_trace():
    """40 and np.int64(40) are one argument, and what is shown is a float either way."""
    for m in (np.int64(40), 40):
        mechanism = Wishart(degrees_of_freedom=m).calibrate(1.0, 1e-6, BOUNDS)
        assert type(mechanism.describe()["degrees_of_freedom"]) is float
    clipped = Linear(clip=np.int64(1)).calibrate(1.0, 1e-6, BOUNDS)
    assert type(clipped.describe()["clip"]) is float


def test_threads_get_the_same_numbers():
    with ThreadPoolExecutor(4) as pool:
        runs = [pool.submit(Wishart().calibrate, 1.25, 1e-6, BOUNDS) for _ in range(8)]
        found = [run.result() for run in runs]
    assert all(same(one, found[0]) for one in found)


@pytest.mark.parametrize("options", OPTIONS, ids=repr)
def test_numbers_of_other_types_are_the_same_numbers(options):
    """Arithmetic in single precision would end a search nowhere, or above δ."""
    epsilon, delta = np.float32(3.0), np.float32(1e-5)
    found = options.calibrate(epsilon, delta, BOUNDS, radius=1.0, accuracy=1e-6)
    assert found is options.calibrate(
        float(epsilon), float(delta), BOUNDS, radius=1.0, accuracy=1e-6
    )
    assert float(found.profile(3.0)) <= float(delta)
