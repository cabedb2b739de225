"""Nothing private passes as public through any place of CVXPY that an array can stand in.

The table of places (`slots`) is complete for the CVXPY that is installed, or a test here fails.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import warnings

import cvxpy as cp
import numpy as np
import pytest
from cvxpy.atoms.atom import Atom
from cvxpy.constraints.constraint import Constraint
from cvxpy.expressions.leaf import Leaf

from cvxqop._cvxpy.holdings import KNOWN, holdings
from cvxqop.errors import ProblemError
from cvxqop.problem.bounds import Bounds
from cvxqop.problem.private.data import match
from cvxqop.problem.reading.analysis import read

from .reachable import fingerprint
from .slots import ATOMS, CONSTRAINTS, FORMS, LEAVES, OTHER, Room

pytestmark = [
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::RuntimeWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
]

TABLES = (ATOMS, OTHER, CONSTRAINTS, LEAVES)
PLACES = {
    f"{name} {i}": builder
    for table in TABLES
    for name, builders in table.items()
    for i, builder in enumerate(builders, start=100 * (table is LEAVES))
}
# What is built of a private array is another array here, or positions one by one: never found by
# its numbers, and refused by its shape or its attribute.
DERIVED = {"matrix_frac 1", "operators 9", "indices 7", "boolean 100", "integer 100", "bounds 109"}

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    for module in pkgutil.walk_packages(cp.__path__, "cvxpy."):
        if module.name.startswith(("cvxpy.atoms", "cvxpy.constraints", "cvxpy.transforms")):
            importlib.import_module(module.name)


def build(place, form, record=0.0):
    """What stands in a place, or None where CVXPY takes no such object there."""
    room = Room(form, record)
    try:
        return room, PLACES[place](room)
    except ProblemError:
        raise
    except Exception:
        return room, None


@pytest.mark.parametrize("place", PLACES)
def test_it_is_found(place):
    built = 0
    for form in FORMS:
        room, item = build(place, form)
        if item is None:
            continue
        built += 1
        try:
            data = match(room.private, [item])
        except ProblemError:
            continue  # what it keeps cannot be looked at
        assert data.contains(item) or place in DERIVED, form
    assert built


PLACEMENTS = {
    "loss": lambda o, e: (cp.sum_squares(o.X @ o.w - o.y - cp.sum(e)), None, []),
    "argument": lambda o, e: (cp.sum_squares(o.X @ o.w - o.y - e), None, []),
    "weight": lambda o, e: (cp.sum(cp.multiply(e, cp.square(o.X @ o.w - o.y))), None, []),
    "regulariser": lambda o, e: (None, cp.sum(e), []),
    "constraint": lambda o, e: (None, None, [e <= 1]),
}


def problem_of(room, item, placement):
    """The problem with an item in a part of it; None where CVXPY has none such."""
    if isinstance(item, Constraint):
        loss, rest, constraints = None, None, [item]
    else:
        try:
            loss, rest, constraints = PLACEMENTS[placement](room, item)
        except Exception:
            return None
    own = cp.sum_squares(room.X @ room.w - room.y) if loss is None else loss
    return cp.Problem(cp.Minimize(own if rest is None else own + rest), constraints)


def outcome(place, form, placement, adjacency, record=0.0):
    """A reading in full, or None for a refusal."""
    room, item = build(place, form, record)
    problem = None if item is None else problem_of(room, item, placement)
    if problem is None:
        return None
    variables = [node for node in holdings_of(problem) if isinstance(node, cp.Variable)]
    try:
        erm = read(problem, [*room.private, *room.used], public=variables, adjacency=adjacency)
    except ProblemError:
        return None
    words = (erm.texts.rest, erm.texts.constraints, erm.public_data, erm.loss.terms[0].row_parts)
    return words, erm.loss.constants(Bounds(row_norm=1.0, offset=1.0)), fingerprint(erm)


def holdings_of(problem):
    try:
        return holdings([problem.objective, *problem.constraints]).nodes
    except ProblemError:
        return []


@pytest.mark.parametrize("adjacency", ["replace_one", "add_remove"])
@pytest.mark.parametrize("placement", PLACEMENTS)
def test_it_is_never_released_as_public(placement, adjacency):
    """Refused, or everything that is public of the reading is the same for a neighbour's data."""
    accepted = []
    for place in PLACES:
        for form in FORMS:
            found = outcome(place, form, placement, adjacency)
            if found is None:
                continue
            other = outcome(place, form, placement, adjacency, record=1.0)
            assert other is None or other == found, (place, form)
            accepted.append(place)
            if placement == "regulariser":  # a sum over records, linear in θ, is a private loss
                assert not found[0][0], (place, form)
    # Only beside a record's own number may another number of the record stand.
    assert bool(accepted) == (placement in ("argument", "regulariser")), accepted


@pytest.mark.parametrize("form", FORMS)
def test_the_same_places_are_taken_with_public_arrays(form):
    """The refusals are of private arrays, and not of all arrays."""
    taken = 0
    for place in PLACES:
        room, item = build(place, form)
        if item is None:
            continue
        private, shown = [room.X, room.y], room.private
        for placement in ("regulariser", "constraint"):
            problem = problem_of(room, item, placement)
            variables = [node for node in holdings_of(problem) if isinstance(node, cp.Variable)]
            try:
                read(problem, private, public=[*shown, *variables])
            except ProblemError:
                continue
            taken += 1
    assert taken > 60


def names_of(namespace):
    for name, item in vars(namespace).items():
        module = getattr(item, "__module__", "") or ""
        if not name.startswith("_") and module.startswith(("cvxpy.atoms", "cvxpy.transforms")):
            yield name


# Of numbers and not of a problem: what they compute, CVXPY puts into an expression as new numbers.
COMPUTED = {"linearize"}
UTILITIES = {"enable_warnings", "disable_warnings", "warnings_enabled"}


def test_every_name_of_cvxpy_is_in_the_table():
    names = {name for name in names_of(cp) if callable(getattr(cp, name))}
    assert names - set(ATOMS) - COMPUTED == {"indicator"} & names
    assert set(ATOMS) - names == set()


def subclasses(cls):
    for sub in cls.__subclasses__():
        if sub.__module__.startswith("cvxpy."):
            yield sub
            yield from subclasses(sub)


ABSTRACT = {"AffAtom", "AxisAtom", "BinaryOperator", "Elementwise", "LogicExpression"}
ABSTRACT |= {"UnaryOperator", "Wrap", "_NaryLogicExpression", "Cone"}


def test_every_class_of_cvxpy_is_reached_by_the_table():
    reached = set()
    for place in PLACES:
        for form in FORMS:
            _, item = build(place, form)
            if item is None:
                continue
            try:
                reached |= {type(node).__name__ for node in holdings(item).nodes}
            except ProblemError as error:
                reached.add(str(error).split()[0])
    classes = {sub.__name__ for base in (Atom, Constraint) for sub in subclasses(base)}
    assert classes - reached == ABSTRACT
    assert classes - ABSTRACT <= KNOWN


def test_every_argument_of_a_leaf_is_in_the_table():
    arguments = set(inspect.signature(Leaf.__init__).parameters) - {"self", "shape"}
    for leaf in (cp.Variable, cp.Parameter, cp.Constant, cp.CallbackParam):
        own = inspect.signature(leaf.__init__).parameters
        arguments |= set(own) - {"self", "shape", "kwargs"}
    # Names, numbers that CVXPY counts, and a callback, which is refused whatever it is.
    assert arguments - {"name", "var_id", "id", "callback"} == set(LEAVES)


def test_every_known_class_exists():
    classes = {sub.__name__ for base in (Atom, Constraint) for sub in subclasses(base)}
    assert KNOWN - classes == {"Minimize", "Maximize", "PartialProblem", "indicator"}


def test_a_parameter_with_a_function_is_refused():
    p = np.array([0.1, 0.2, 0.3, 0.4])
    x, w = cp.Variable(4), cp.Variable(4)
    hidden = cp.CallbackParam(callback=lambda: p, shape=(4,))
    for constraint in (x <= hidden, hidden @ x <= 1):
        with pytest.raises(ProblemError, match="CallbackParam"):
            read(cp.Problem(cp.Minimize(cp.sum_squares(w - p)), [constraint]), [p])


class Doubled(Atom):
    """An atom that keeps numbers where nobody looks."""

    def __init__(self, x, numbers):
        self._somewhere = {"deep": [(numbers,)]}
        super().__init__(x)

    def shape_from_args(self):
        return ()

    def sign_from_args(self):
        return (False, False)

    def is_atom_convex(self):
        return True

    def is_atom_concave(self):
        return True

    def is_incr(self, idx):
        return True

    def is_decr(self, idx):
        return False

    def numeric(self, values):
        return np.sum(values[0])

    def _grad(self, values):
        return [None]


class Bounded(cp.Variable):
    """A leaf of somebody's own."""


class Half(cp.constraints.NonNeg):
    """A constraint of somebody's own."""


@pytest.mark.parametrize("later", [False, True])
@pytest.mark.parametrize("adjacency", ["replace_one", "add_remove"])
def test_what_is_not_known_is_refused_by_name(monkeypatch, later, adjacency):
    """Also where it stands beside the loss, and where a later CVXPY brought it."""
    X, w, x = np.eye(4, 3), cp.Variable(3), cp.Variable(4)
    if later:
        for cls in (Doubled, Bounded, Half):
            monkeypatch.setattr(cls, "__module__", "cvxpy.atoms.later")
    loss = cp.sum_squares(X @ w)
    atom = Doubled(x, X)
    problems = {
        "Doubled": [(loss + atom, []), (loss, [atom <= 1]), (cp.sum_squares(X @ w - atom), [])],
        "Half": [(loss, [Half(x)])],
    }
    if not later:
        problems["Bounded"] = [(loss + cp.sum(Bounded(4)), [])]
    for name, cases in problems.items():
        for objective, constraints in cases:
            with pytest.raises(ProblemError, match=name):
                read(cp.Problem(cp.Minimize(objective), constraints), [X], adjacency=adjacency)
