"""What a person reads: the private solution, beside the private loss.

Nothing on these objects was computed from records, except what has been released: the values of
the variables and, for a quadratic loss, the perturbed quadratic form.
"""

from __future__ import annotations

import copy
import html
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, Self

import cvxpy as cp
import numpy as np
import numpy.typing as npt

from cvxqop.guarantee import Guarantee
from cvxqop.inference import publishing
from cvxqop.inference.solution_verbs import SolutionVerbs
from cvxqop.perturbed_loss import PrivateLoss
from cvxqop.privacy.mechanism import Mechanism
from cvxqop.travel import Description, deep_copies, distinct_names, read_only

__all__ = ["Guarantee", "PrivateLoss", "PrivateSolution"]

Array = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class PrivateSolution(SolutionVerbs):
    """A differentially private minimiser. Made by :func:`cvxqop.privatize`.

    ``solution[variable]`` is the release of a variable. Deep copies and pickles hold no record and
    no other value of a variable; theirs are found by the same variable as long as it has the same
    number (CVXPY's ``id``), name and shape. In `to_dict`, `to_json` and print, of several variables
    with one name all but the first are called name#2, name#3, …

    Attributes
    ----------
    values : mapping {variable: ndarray}
        The release: the variables of the private loss, and those of the public rest. The arrays
        are read-only and share no memory with the values of the variables.
    guarantee : Guarantee
        What is promised, by which mechanism, under which assumptions.
    solver : str
        The solver that was used.
    private_loss : PrivateLoss or None
        For quadratic losses, what was released underneath: more problems can be solved from it.
    """

    values: Mapping[cp.Variable, Any]
    guarantee: Guarantee
    solver: str
    private_loss: PrivateLoss | None = field(default=None, repr=False)
    _origins: tuple[Description, ...] = field(default=(), repr=False)
    _rest: tuple[Any, Any] | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        values = {variable: read_only(value) for variable, value in self.values.items()}
        object.__setattr__(self, "values", MappingProxyType(values))
        if not self._origins:
            origins = tuple(Description.of(variable) for variable in values)
            object.__setattr__(self, "_origins", origins)

    def __getitem__(self, variable: cp.Variable) -> Any:
        """The release of a variable.

        Raises
        ------
        KeyError
            If the variable is not of this release; the message names those that are.
        """
        if isinstance(variable, cp.Variable):
            if variable in self.values:
                return self.values[variable]
            wanted = Description.of(variable).identity
            found = [
                value
                for origin, value in zip(self._origins, self.values.values(), strict=True)
                if origin.identity == wanted
            ]
            if len(found) == 1:
                return found[0]
        held = [f"{origin.name} of shape {origin.shape}" for origin in self._origins]
        raise KeyError(
            f"This is no variable of the release, which holds {', '.join(held)}. A copy or a "
            "pickle is asked with the variable it was made for, or with one of solution.values."
        )

    @property
    def epsilon(self) -> float:
        """ε of the guarantee."""
        return self.guarantee.epsilon

    @property
    def delta(self) -> float:
        """δ of the guarantee."""
        return self.guarantee.delta

    @property
    def adjacency(self) -> str:
        """What neighbouring data sets are."""
        return self.guarantee.adjacency

    @property
    def mechanism(self) -> Mechanism:
        """The calibrated mechanism."""
        return self.guarantee.mechanism

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What the guarantee rests on, in sentences."""
        return self.guarantee.assumptions

    @property
    def certificate(self) -> float | None:
        """Δ that the solve was certified to before the release; None where none is needed, or
        where a solver was trusted.

        The promise alone: how close the solver really came is not private.
        """
        release = self.mechanism.release
        return release.accuracy if release and self.guarantee.certified else None

    @property
    def reproducible(self) -> bool:
        """True when a seed was given, and then the release is not private."""
        return any("seed" in caveat for caveat in self.guarantee.caveats)

    def profile(self, epsilon: npt.ArrayLike) -> Array:
        """δ(ε) of the release, rounded up."""
        return self.guarantee.profile(epsilon)

    def epsilon_at(self, delta: float) -> float:
        """The smallest ε at a δ, rounded up."""
        return self.guarantee.epsilon_at(delta)

    def _named(self) -> list[tuple[str, Array]]:
        return list(zip(distinct_names(self.values), self.values.values(), strict=True))

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> PrivateSolution:
        values = dict(zip(deep_copies(self.values, memo), self.values.values(), strict=True))
        loss = copy.deepcopy(self.private_loss, memo)
        return PrivateSolution(values, self.guarantee, self.solver, loss, self._origins)

    def __getstate__(self) -> dict[str, Any]:
        variables, loss = list(self.values), self.private_loss
        own = {variable: k for k, variable in enumerate(variables)}
        return {
            "origins": self._origins,
            "values": list(self.values.values()),
            "guarantee": self.guarantee,
            "solver": self.solver,
            "loss": loss and (loss.state(), [own[v] for v in loss.variables]),
        }

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        variables = [origin.variable() for origin in state["origins"]]
        values = dict(zip(variables, state["values"], strict=True))
        loss = None
        if state["loss"] is not None:
            held, positions = state["loss"]
            loss = PrivateLoss(variables=tuple(variables[k] for k in positions), **held)
        self.__init__(values, state["guarantee"], state["solver"], loss, state["origins"])  # type: ignore[misc]

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers and strings, ready for ``json.dumps``."""
        return {
            "values": {name: value.tolist() for name, value in self._named()},
            "solver": self.solver,
            "certificate": self.certificate,
            **self.guarantee.to_dict(),
        }

    def __str__(self) -> str:
        lines = ["Private solution", *self.guarantee.lines(), f"  {'solver':<12}{self.solver}"]
        for name, value in self._named():
            text = np.array2string(value, precision=6, threshold=12, max_line_width=72)
            lines.append(f"  {name:<12}{text.replace(chr(10), chr(10) + ' ' * 14)}")
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(str(self))}</pre>"

    def to_json(self) -> str:
        """`to_dict` as a JSON string, and all that `from_json` needs to make the release again.

        Examples
        --------
        >>> import cvxpy as cp, cvxqop, numpy as np
        >>> X, y, theta = np.ones((50, 2)), np.ones(50), cp.Variable(2, name="theta")
        >>> solution = cvxqop.privatize(
        ...     cp.Problem(cp.Minimize(cp.sum_squares(X @ theta - y))), private=[X, y],
        ...     bounds=cvxqop.Bounds(row_norm=2.0, offset=1.0), epsilon=1.0, delta=1e-6,
        ... )
        >>> again = cvxqop.PrivateSolution.from_json(solution.to_json(), variables=[theta])
        >>> bool(np.all(again[theta] == solution[theta]))
        True
        """
        loss, content = self.private_loss, self.__getstate__()
        content["origins"] = [replace(origin, id=0) for origin in self._origins]
        if loss is not None:
            held, positions = content["loss"]
            content["loss"] = {name: held[name] for name in held if name != "guarantee"}
            content["positions"] = positions
        return publishing.written("PrivateSolution", content, self.to_dict())

    @classmethod
    def from_json(
        cls, text: str | bytes, variables: Sequence[cp.Variable] | None = None
    ) -> PrivateSolution:
        """The solution that `to_json` wrote, with its private loss; no record is needed for it.

        Parameters
        ----------
        text : str or bytes
            What `to_json` returned.
        variables : list of cvxpy.Variable, optional
            Those of the release, by name, order and shape. None makes new ones, the keys of
            ``values``.

        Raises
        ------
        ProblemError
            The text is not a release of this kind, or the variables are others.
        """
        content = publishing.read("PrivateSolution", text)

        def make() -> PrivateSolution:
            own = publishing.matched(content["origins"], variables)
            guarantee, loss = content["guarantee"], content["loss"]
            values = dict(zip(own, content["values"], strict=True))
            if any(np.shape(value) != variable.shape for variable, value in values.items()):
                raise ValueError("shapes")
            if loss is not None:
                chosen = tuple(own[k] for k in content["positions"])
                loss = PrivateLoss(variables=chosen, guarantee=guarantee, **loss).consistent()
            return cls(values, guarantee, content["solver"], loss)

        return publishing.rebuilt(make)
