"""The options of a private solve: names, defaults and checks. None of them depends on data."""

from __future__ import annotations

import difflib
import math
import numbers
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Required, TypedDict

from cvxqop.errors import OptionError
from cvxqop.privacy.accounting.profile import check_privacy
from cvxqop.privacy.budget import Budget
from cvxqop.privacy.gaussian.options import Gaussian
from cvxqop.privacy.linear.options import Linear
from cvxqop.privacy.wishart.ensemble import Adjacency
from cvxqop.privacy.wishart.options import Wishart
from cvxqop.problem.anchor import CommonMinimizer
from cvxqop.problem.bounds import Bounds
from cvxqop.problem.losses.declared import Declared
from cvxqop.records import Records

__all__ = ["Options", "Settings", "check_class_weight", "check_persons"]

ADJACENCIES = ("replace_one", "add_remove")
FINEST = 1e-12
Perturbation = Wishart | Gaussian | Linear
PERTURBATIONS: dict[str, type[Perturbation]] = {
    "wishart": Wishart,
    "gaussian": Gaussian,
    "linear": Linear,
}


class Options(TypedDict, total=False):
    """The keyword arguments of the verbs, for editors and type checkers; meanings and defaults are
    those of :func:`cvxqop.privatize`."""

    private: Required[Sequence[Any] | Records]
    public: Sequence[Any]
    bounds: Bounds | None
    epsilon: Required[float]
    delta: Required[float]
    adjacency: Adjacency
    perturbation: str | Perturbation
    anchor: Any
    radius: float | None
    accuracy: float
    nonfinite: str
    solver: str | None
    solver_options: Mapping[str, Any] | None
    seed: Any
    budget: Budget | None
    declared: Declared | None
    smoothing: float | str | None
    keep_loss: bool
    class_weight: Mapping[float, float] | None
    accept_solver_accuracy: bool
    persons: Any
    rows_per_person: int | str | None
    verbose: bool


@dataclass(frozen=True, kw_only=True, eq=False)
class Settings:
    """Everything that a caller of :func:`cvxqop.privatize` may state; see there."""

    private: Sequence[Any]
    public: Sequence[Any] = ()
    bounds: Bounds = None  # type: ignore[assignment]  # absent beside `declared` only
    epsilon: float
    delta: float
    adjacency: Adjacency = "replace_one"
    perturbation: str | Perturbation = "auto"
    anchor: Any = None
    radius: float | None = None
    accuracy: float = 1e-6
    nonfinite: str = "raise"
    solver: str | None = None
    solver_options: Mapping[str, Any] = field(default_factory=dict)
    seed: Any = None
    budget: Budget | None = None
    declared: Declared | None = None
    smoothing: float | str | None = None
    keep_loss: bool = True
    class_weight: Mapping[float, float] | None = None
    accept_solver_accuracy: bool = False
    persons: Any = field(default=None, repr=False)
    rows_per_person: int | str | None = None
    verbose: bool = False

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> Settings:
        """Settings from keyword arguments; an unknown or missing name is refused by name."""
        known = {f.name for f in fields(cls)}
        for name in options:
            if name not in known:
                close = difflib.get_close_matches(name, known, 1)
                hint = f" Did you mean {close[0]!r}?" if close else ""
                raise OptionError(
                    f"Unknown option {name!r}.{hint} Options are {', '.join(sorted(known))}."
                )
        if isinstance(options.get("private"), Records):
            options = options["private"].merged(options)
        if options.get("budget") is None:
            options = {**options, "budget": Budget.current()}
        if options.get("solver_options", 0) is None:
            options = {**options, "solver_options": {}}
        needed = () if options.get("declared") is not None else ("bounds",)
        for name in ("private", *needed, "epsilon", "delta"):
            if name not in options:
                told = (
                    " State public bounds, such as Bounds(row_norm=1.0, offset=1.0); they are "
                    "never read from data."
                )
                raise OptionError(
                    f"The option {name!r} is missing.{told if name == 'bounds' else ''}"
                )
        return cls(**options)

    def __post_init__(self) -> None:
        if isinstance(self.private, str | bytes) or not isinstance(self.private, list | tuple):
            raise OptionError(
                "private must be a list of arrays, constants or parameters, such as "
                f"private=[X, y], not {type(self.private).__name__}."
            )
        if not isinstance(self.public, list | tuple):
            raise OptionError(
                "public must be a list of arrays, constants, parameters or variables, such as "
                f"public=[G], not {type(self.public).__name__}."
            )
        for name in ("accept_solver_accuracy", "keep_loss", "verbose"):
            if not isinstance(getattr(self, name), bool):
                raise OptionError(f"{name} must be True or False.")
        if self.declared is not None or self.accept_solver_accuracy:
            self._check_declared()
        elif not isinstance(self.bounds, Bounds):
            raise OptionError(
                f"bounds must be a cvxqop.Bounds, not {type(self.bounds).__name__}: state public "
                "bounds, such as Bounds(row_norm=1.0, offset=1.0). They are never read from data."
            )
        check_persons(self.persons, self.rows_per_person, self.declared)
        check_class_weight(self.class_weight, self.declared)
        for name in ("epsilon", "delta", "accuracy", "radius"):
            value = getattr(self, name)
            if value is not None or name != "radius":
                _check_number(name, value)
                object.__setattr__(self, name, float(value))
        check_privacy(self.epsilon, self.delta)
        if not (0.0 < self.distance < math.inf):
            raise OptionError(f"radius must be positive and finite, got {self.radius!r}.")
        if not FINEST <= self.accuracy < math.inf:
            raise OptionError(
                f"accuracy must lie between {FINEST:g} and infinity, got {self.accuracy!r}: times "
                "the radius it is a distance that double precision must be able to certify."
            )
        if self.smoothing is not None and self.smoothing != "auto":
            _check_width(self.smoothing)
        _check_choice("adjacency", self.adjacency, ADJACENCIES)
        _check_choice("nonfinite", self.nonfinite, ("raise", "zero"))
        if not isinstance(self.perturbation, Perturbation):
            _check_choice("perturbation", self.perturbation, (*PERTURBATIONS, "auto"))
        if self.solver is not None and not isinstance(self.solver, str):
            raise OptionError("solver must be the name of a solver, such as 'CLARABEL', or None.")
        if not isinstance(self.solver_options, Mapping):
            raise OptionError("solver_options must be a dict {option: value}.")
        if self.budget is not None and not isinstance(self.budget, Budget):
            raise OptionError(
                f"budget must be a cvxqop.Budget or None, not {type(self.budget).__name__}."
            )

    def _check_declared(self) -> None:
        if self.declared is None:
            raise OptionError(
                "accept_solver_accuracy belongs to declared losses; others are certified."
            )
        if not isinstance(self.declared, Declared):
            raise OptionError(
                f"declared must be a cvxqop.Declared, not {type(self.declared).__name__}."
            )
        if self.bounds is not None:
            raise OptionError(
                "bounds: a declared loss is not clipped, so that bounds on the data do nothing. "
                "Leave bounds out; what they would imply belongs into declared."
            )
        if self.nonfinite != "raise":
            raise OptionError("nonfinite: records of a declared loss cannot be replaced.")
        if isinstance(self.anchor, CommonMinimizer):
            raise OptionError(
                "anchor: CommonMinimizer cuts the residuals of every record, which a declared loss "
                "does not have. Pass the point itself and state Declared(anchor_gradient=…): 0 if "
                "it minimises the loss of every possible record, smoothness * error if near one."
            )

    @property
    def distance(self) -> float:
        """D0, what ‖θ̂ − θ0‖ is taken to be: ``radius``, and 1 before it is settled."""
        return 1.0 if self.radius is None else float(self.radius)

    @property
    def tolerance(self) -> float:
        """Δ = accuracy · D0, the certified distance of a solve in units of θ."""
        return float(self.accuracy) * self.distance

    @property
    def mechanism(self) -> Perturbation:
        """The mechanism, from its name or as given; "auto" must have been decided before."""
        if isinstance(self.perturbation, Perturbation):
            return self.perturbation
        return PERTURBATIONS[self.perturbation]()

    @property
    def corrects_anchor(self) -> bool:
        """Whether the release makes up for the error of the anchor (calibration "paper", η > 0), so
        that the solution alone is private and no quadratic form may be seen."""
        mechanism, anchor = self.mechanism, self.anchor
        paper = isinstance(mechanism, Wishart) and mechanism.calibration == "paper"
        return paper and isinstance(anchor, CommonMinimizer) and anchor.error > 0.0


def check_persons(persons: Any, rows: Any, declared: Any) -> None:
    """``persons`` and ``rows_per_person`` are stated together, and not of a declared loss.

    Raises
    ------
    OptionError
        With what is missing.
    """
    if persons is None and rows is None:
        return
    if declared is not None:
        raise OptionError(
            "persons: rows of a declared loss cannot be left out or weighed. Merge the rows of a "
            "person to one record, and declare the constants of that."
        )
    if rows is None:
        raise OptionError(
            "rows_per_person is missing beside persons: state a public number of rows, such as "
            "rows_per_person=5, of which no person has more that count, or rows_per_person='mean', "
            "which weighs the rows of a person to count as one."
        )
    if persons is None:
        raise OptionError("persons is missing beside rows_per_person: give the id of each row.")
    whole = isinstance(rows, numbers.Integral) and not isinstance(rows, bool) and int(rows) > 0
    if not (whole or (isinstance(rows, str) and rows == "mean")):
        raise OptionError(
            f"rows_per_person must be a positive int or 'mean', not {rows!r}. It is public and "
            "must not be read from the data."
        )


def check_class_weight(weights: Any, declared: Any) -> None:
    """``class_weight`` is a dict of positive public numbers, and not stated of a declared loss.

    Raises
    ------
    OptionError
        With what is wrong.
    """
    if weights is None:
        return
    if not isinstance(weights, Mapping) or len(weights) < 2:
        raise OptionError(
            "class_weight must be a dict with a weight for each class, such as {-1: 1.0, 1: 2.0}."
        )
    if declared is not None:
        raise OptionError(
            "class_weight: the records of a declared loss have no labels that are known. Leave it "
            "out, and write the weights into the loss."
        )
    for label, weight in weights.items():
        if not isinstance(label, numbers.Real) or not math.isfinite(label):
            raise OptionError("class_weight: a class is a finite number, such as -1, 0 or 1.")
        if isinstance(weight, bool) or not isinstance(weight, numbers.Real):
            raise OptionError("class_weight: a weight must be a number.")
        if not 1e-70 <= float(weight) <= 1e70:
            raise OptionError("class_weight: a weight must be positive and finite.")


def _check_number(name: str, value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise OptionError(f"{name} must be a number, not {type(value).__name__}.")
    if math.isnan(value):
        raise OptionError(f"{name} must not be NaN.")


def _check_width(value: Any) -> None:
    if isinstance(value, str):
        raise OptionError(f"smoothing must be a positive number, 'auto' or None, not {value!r}.")
    _check_number("smoothing", value)
    if not 0.0 < value < math.inf:
        raise OptionError(f"smoothing must be positive and finite, got {value!r}.")


def _check_choice(name: str, value: Any, choices: tuple[str, ...]) -> None:
    if not isinstance(value, str) or value not in choices:
        listed = ", ".join(repr(choice) for choice in choices)
        raise OptionError(f"{name} must be one of {listed}, not {value!r}.")
