"""Random objectives: recipes that write the same objective for any data.

A recipe is a function of a `World`, which holds the data and the variables. Written for two worlds
that differ in one record, a recipe gives two objectives that must be read alike but for that
record's row. Public numbers have few digits, private ones many, so that a private number in a
message can be told.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import cvxpy as cp
import numpy as np
import scipy.sparse as sp

__all__ = ["FORMS", "Recipe", "World"]

Recipe = Callable[["World"], Any]

FORMS: dict[str, Callable[[Any, str], Any]] = {
    "array": lambda array, name: array,
    "constant": lambda array, name: cp.Constant(array, name=name),
    "parameter": lambda array, name: cp.Parameter(array.shape, value=array, name=name),
    "sparse": lambda array, name: sp.csr_array(array) if array.ndim == 2 else array,
}


@dataclass(frozen=True, eq=False)
class World:
    """Private X (n, d), Z (n, 2), y (n,), Y (n, k), labels T (n, k); public arrays; variables."""

    n: int
    d: int
    k: int
    seed: int
    form: str
    records: dict[str, Any]
    used: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, n: int, d: int, k: int, seed: int, form: str) -> World:
        """A world with data of its own."""
        rng = np.random.default_rng(seed)
        shapes = {"X": (n, d), "Z": (n, 2), "y": (n,), "Y": (n, k)}
        records = {name: rng.standard_normal(shape) for name, shape in shapes.items()}
        records["T"] = rng.dirichlet(np.ones(k), n)
        return cls(n, d, k, seed, form, records)

    def changed(self, i: int) -> World:
        """The world with another record i."""
        other = World.of(self.n, self.d, self.k, self.seed + 1, self.form).records
        records = {name: array.copy() for name, array in self.records.items()}
        for name, array in records.items():
            array[i] = other[name][i]
        return replace(self, records=records, used={})

    def without(self, i: int) -> World:
        """The world without record i."""
        records = {name: np.delete(array, i, axis=0) for name, array in self.records.items()}
        return replace(self, n=self.n - 1, records=records, used={})

    def zeros(self) -> World:
        """The world where every record is zero, told by identity and not by value."""
        records = {name: np.zeros_like(array) for name, array in self.records.items()}
        return replace(self, form="constant", records=records, used={})

    def held(self, name: str) -> Any:
        """A private array as it is listed in ``private``."""
        if name not in self.used:
            self.used[name] = FORMS[self.form](self.records[name], name)
        return self.used[name]

    @property
    def private(self) -> list[Any]:
        """What the recipes have used."""
        return list(self.used.values())

    def __getattr__(self, name: str) -> Any:
        if name in ("X", "Z", "y", "Y", "T"):
            return cp.Constant.cast_to_const(self.held(name))
        if name in self.variables:
            return self.variables[name]
        raise AttributeError(name)

    @cached_property
    def variables(self) -> dict[str, cp.Variable]:
        """The variables, by name."""
        shapes: dict[str, Any] = {"w": self.d, "W": (self.d, 1), "v": 2, "b": ()}
        shapes |= {"V": (self.d, self.k), "c": self.k, "row": (1, self.k), "free": 2}
        return {name: cp.Variable(shape, name=name) for name, shape in shapes.items()}

    @cached_property
    def P(self) -> Any:
        """Public rows (n, d)."""
        return np.round(np.random.default_rng(7).uniform(-2, 2, (self.n, self.d)), 2)

    @cached_property
    def q(self) -> Any:
        """Public weights (n,)."""
        return np.round(np.random.default_rng(8).uniform(0.5, 2, self.n), 2)

    @cached_property
    def M(self) -> Any:
        """A public map (d, d)."""
        return np.round(np.random.default_rng(9).uniform(-2, 2, (self.d, self.d)), 2)

    @cached_property
    def R(self) -> Any:
        """A public matrix (n, n) that mixes records."""
        return np.round(np.random.default_rng(10).uniform(0.1, 2, (self.n, self.n)), 2)
