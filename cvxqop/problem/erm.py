"""A private problem as data: losses over records, a public regulariser, public constraints."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import cvxpy as cp
import numpy as np
import numpy.typing as npt

from cvxqop.errors import OptionError
from cvxqop.problem.losses.contract import PrivateTerms
from cvxqop.problem.parts import Texts
from cvxqop.problem.private.persons import Persons

__all__ = ["ERM"]

Array = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class ERM:
    """J(θ) = Σ_i ℓ(θ; z_i) + r(θ) over C, with private records z_i and public r, C.

    Attributes
    ----------
    variables : tuple of Variable
        θ: the variables of the loss in order of appearance, each flattened column by column.
    loss : PrivateTerms
        Σ_i ℓ(θ; z_i).
    regulariser : Expression or None
        r: the public rest of the objective.
    constraints : list of Constraint
        C.
    private_names : tuple of str
        One description a private array.
    public_data : tuple of str
        Descriptions of public arrays with one row a record.
    mean : bool
        Whether a weight holds the factor 1/n.
    adjacency : str
        What the problem was read for: "replace_one" or "add_remove".
    texts : Texts
        The problem in words.
    private_leaves : tuple
        The constants and parameters that hold records.
    private_arrays : tuple
        The arrays that were listed as private or given to a `glm_loss`.
    persons : Persons or None
        Whose rows are whose, where neighbours differ in all rows of a person.
    replaced : tuple of str
        What takes the place of losses that have no bound on their curvature, and of constant
        columns, in sentences.
    scale : ndarray, shape (D,), or 1
        T: where it is not one, all of this is a problem in T⁻¹θ, and its variables stand for that.
    unscaled : ERM, optional
        The problem in θ that it came from.
    """

    variables: tuple[cp.Variable, ...]
    loss: PrivateTerms
    regulariser: cp.Expression | None
    constraints: list[Any]
    private_names: tuple[str, ...]
    public_data: tuple[str, ...]
    mean: bool
    adjacency: str
    texts: Texts
    private_leaves: tuple[Any, ...] = ()
    private_arrays: tuple[Any, ...] = ()
    persons: Persons | None = None
    replaced: tuple[str, ...] = ()
    scale: Array | float = 1.0
    unscaled: ERM | None = None

    @property
    def rest_as_written(self) -> tuple[cp.Expression | None, tuple[Any, ...]]:
        """r and C in θ."""
        whole = self.unscaled or self
        return whole.regulariser, tuple(whole.constraints)

    @property
    def dimension(self) -> int:
        """D, the length of θ."""
        return sum(variable.size for variable in self.variables)

    @property
    def n(self) -> int:
        """Number of records."""
        return self.loss.n

    @property
    def public_count(self) -> int | None:
        """How many records, or persons where there are such, if that is public: replace_one."""
        if self.adjacency != "replace_one":
            return None
        return self.n if self.persons is None else self.persons.count

    @property
    def quadratic(self) -> bool:
        """Whether the loss is quadratic in θ."""
        return self.loss.quadratic

    @property
    def terms(self) -> tuple[str, ...]:
        """The private terms as they were written, each once."""
        return tuple(dict.fromkeys(self.texts.terms))

    @property
    def scale_statement(self) -> str | None:
        """What has to be assumed of numbers that multiply the loss: under add_remove, where n is
        private, none of them may be computed from it. None where there is nothing to assume."""
        return self.texts.scale

    def stack(self, values: Mapping[cp.Variable, npt.ArrayLike]) -> Array:
        """T⁻¹θ from one value of θ a variable.

        Raises
        ------
        OptionError
            If a variable has no value, or one of another shape.
        """
        by_id = {variable.id: value for variable, value in values.items()}
        parts = []
        for variable in self.variables:
            if variable.id not in by_id:
                raise OptionError(f"No value was given for the variable {variable.name()}.")
            value = np.asarray(by_id[variable.id], dtype=np.float64)
            if value.shape != variable.shape:
                raise OptionError(
                    f"The value for the variable {variable.name()} has shape {value.shape}; "
                    f"the variable has shape {variable.shape}."
                )
            parts.append(value.reshape(-1, order="F"))
        return np.asarray(np.concatenate(parts) / self.scale)

    def places(self) -> list[tuple[cp.Variable, slice]]:
        """Where the variables stand in θ."""
        ends = np.cumsum([variable.size for variable in self.variables]).tolist()
        return [(v, slice(end - v.size, end)) for v, end in zip(self.variables, ends, strict=True)]

    def unstack(self, theta: Array) -> dict[cp.Variable, Array]:
        """One value a variable from a vector such as θ, in the variables' shapes."""
        return {
            variable: theta[place].reshape(variable.shape, order="F").copy()
            for variable, place in self.places()
        }
