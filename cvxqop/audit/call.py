"""A call of `privatize` with the data left open, so that it can be audited."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from cvxqop.backend import Backend
from cvxqop.case import Case
from cvxqop.errors import OptionError
from cvxqop.preparing import prepare
from cvxqop.privacy.noise import Randomness
from cvxqop.problem.private.snapshot import Snapshot
from cvxqop.solution import PrivateLoss, PrivateSolution
from cvxqop.spending.spend import release_quadratic, spend

__all__ = ["Call"]

State = Callable[[Any], tuple[Any, ...]]
OUTPUTS = ("solution", "loss")


class Call:
    """A private solve as a function of the data set.

    Parameters
    ----------
    state : callable
        Maps a data set to (problem, private), (problem, private, public) or (problem, private,
        public, persons): the CVXPY problem that is stated with it, its private arrays, its public
        ones, and the ids of the persons.
    output : {"solution", "loss"}
        What is audited: the values of the variables, or for a squared loss (H̃, g̃), from which
        they are computed. "loss" is the stronger audit and the faster one.
    **options
        As in :func:`cvxqop.privatize`, without ``private``. A seed is shared by all releases of
        the call, on every data set: each draws a new stream.

    Examples
    --------
    >>> import cvxpy as cp, cvxqop, numpy as np
    >>> from cvxqop.audit import Call, lower_bound
    >>> def state(data):
    ...     X, y = data
    ...     theta = cp.Variable(2)
    ...     return cp.Problem(cp.Minimize(cp.sum_squares(X @ theta - y))), [X, y]
    >>> call = Call(
    ...     state, output="loss", bounds=cvxqop.Bounds(row_norm=1.0, offset=1.0),
    ...     epsilon=1.0, delta=0.01
    ... )
    >>> one, other = (np.eye(2), np.ones(2)), (np.eye(2), np.array([1.0, -1.0]))
    >>> lower_bound(call, one, other, trials=200).holds
    True
    """

    def __init__(self, state: State, *, output: str = "solution", **options: Any) -> None:
        if output not in OUTPUTS:
            raise OptionError(f"output must be 'solution' or 'loss', not {output!r}.")
        for name in ("epsilon", "delta"):
            if name not in options:
                raise OptionError(f"The option {name!r} is missing.")
        if isinstance(options.get("seed"), int):
            options["seed"] = Randomness(options["seed"]).parent
        self.state, self.output, self.options = state, output, options
        self.epsilon, self.delta = float(options["epsilon"]), float(options["delta"])
        self._prepared: list[tuple[Any, Case, Backend, Snapshot]] = []

    def prepare(self, data: Any) -> tuple[Case, Backend]:
        """The problem on a data set as the library reads and calibrates it, and the solver. The
        same object is not read twice.

        Raises
        ------
        PlanError
            If the problem has changed since it was read, as for a plan.
        """
        case, backend, snapshot = self._plan(data)
        snapshot.check()
        return case, backend

    def sampler(self, data: Any) -> Callable[[], PrivateSolution | PrivateLoss]:
        """Each call of the result is one release on fresh noise: what ``plan(…).run()`` does."""
        case, backend, snapshot = self._plan(data)
        if self.output == "loss" and not case.mechanism.sensitivity.quadratic:
            raise OptionError("output='loss' is for squared losses; use 'solution'.")
        release = spend if self.output == "solution" else release_quadratic

        def once() -> PrivateSolution | PrivateLoss:
            snapshot.check()
            return release(case, backend)

        return once

    def profile(self, *data: Any) -> Callable[[Any], Any]:
        """δ(ε) as claimed: where the noise differs between data sets, the smallest of theirs."""
        mechanisms = [self.prepare(one)[0].mechanism for one in data]
        return lambda epsilon: np.min([m.profile(epsilon) for m in mechanisms], axis=0)

    def _plan(self, data: Any) -> tuple[Case, Backend, Snapshot]:
        for known, case, backend, snapshot in self._prepared:
            if known is data:
                return case, backend, snapshot
        problem, *lists = self.state(data)
        listed = dict(zip(("private", "public", "persons"), lists, strict=False))
        case, backend, _ = prepare(problem, {**listed, **self.options})
        snapshot = Snapshot(problem, set(case.erm.private_leaves).__contains__)
        self._prepared.append((data, case, backend, snapshot))
        return case, backend, snapshot

    def __call__(self, data: Any) -> PrivateSolution | PrivateLoss:
        """One release."""
        return self.sampler(data)()
