"""What the holder of the data states once: the records, and what is known of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cvxqop.errors import OptionError
from cvxqop.problem.bounds import Bounds
from cvxqop.problem.records.blocks import is_elsewhere

__all__ = ["Records"]


class Records:
    """Private arrays with what is public about them, for any number of calls.

    ``private=`` of every verb takes it in the place of a list, together with what it states. What
    is stated here is not stated in the call again.

    Parameters
    ----------
    *arrays, **named
        The private arrays, constants or parameters, row i of each of record i; those with a name
        are attributes. Arrays that lie elsewhere (Parquet columns, Dask arrays) are for
        :func:`cvxqop.glm_loss`, which keeps them where they are; CVXPY cannot hold them.
    public : list
        Arrays, constants, parameters and variables that everyone may know.
    bounds : Bounds, optional
        Bounds on a record.
    nonfinite : {"raise", "zero"}, optional
        What becomes of a record with NaN or infinity.
    persons, rows_per_person : optional
        Whose row each is, where a person may have several.
    class_weight : dict, optional
        Public weights of the classes of private labels.

    Raises
    ------
    OptionError
        If there is no array, or a name is one of the options.

    Examples
    --------
    >>> import cvxpy as cp, cvxqop, numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-0.5, 0.5, (2000, 3))
    >>> people = cvxqop.Records(
    ...     X=X, y=X @ [1.0, 0.0, -1.0], bounds=cvxqop.Bounds(row_norm=1.0, offset=1.0)
    ... )
    >>> people
    Records(X, y)
    >>> theta = cp.Variable(3)
    >>> problem = cp.Problem(cp.Minimize(cp.sum_squares(people.X @ theta - people.y)))
    >>> for epsilon in (0.5, 1.0):
    ...     solution = cvxqop.privatize(problem, private=people, epsilon=epsilon, delta=1e-6)
    """

    def __init__(
        self,
        *arrays: Any,
        public: Sequence[Any] | None = None,
        bounds: Bounds | None = None,
        nonfinite: str | None = None,
        persons: Any = None,
        rows_per_person: int | str | None = None,
        class_weight: Mapping[float, float] | None = None,
        **named: Any,
    ) -> None:
        if not arrays and not named:
            raise OptionError("Records: there is no array. Write Records(X=X, y=y, bounds=…).")
        for name in named:
            if name in _RESERVED or name.startswith("_"):
                raise OptionError(
                    f"Records: {name!r} is not the name of an array here. Pass that array without "
                    "a name."
                )
        stated = {
            "public": public,
            "bounds": bounds,
            "nonfinite": nonfinite,
            "persons": persons,
            "rows_per_person": rows_per_person,
            "class_weight": class_weight,
        }
        self._stated = {name: value for name, value in stated.items() if value is not None}
        self._arrays, self._named = arrays, dict(named)

    def __getattr__(self, name: str) -> Any:
        """An array by its name."""
        if not name.startswith("_") and name in self._named:
            return self._named[name]
        raise AttributeError(f"Records holds no array of the name {name!r}.")

    def __repr__(self) -> str:
        unnamed = ["…"] if self._arrays else []
        return f"Records({', '.join([*unnamed, *self._named])})"

    def merged(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """The options of a call with what is stated here.

        Raises
        ------
        OptionError
            If something is stated in both places.
        """
        for name in self._stated:
            if options.get(name) is not None:
                raise OptionError(
                    f"{name} is stated in the Records and in the call: state it once, in the "
                    "Records if it holds for every call."
                )
        held = [
            array for array in (*self._arrays, *self._named.values()) if not is_elsewhere(array)
        ]
        return {**options, **self._stated, "private": held}


_RESERVED = {"merged", "private", "epsilon", "delta"}
