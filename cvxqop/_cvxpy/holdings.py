"""Everything that a CVXPY object holds, so that no array can hide from the reader.

An expression is more than its arguments: a variable has bounds, an index its positions, a
geometric mean its weights, a support function a whole set. `holdings` looks into every attribute,
list and dictionary, and refuses by name what it does not know: an atom that a later CVXPY brings
is refused until somebody has looked at what it keeps.
"""

from __future__ import annotations

import numbers
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import cvxpy as cp
import numpy as np
import scipy.sparse as sp
from cvxpy.transforms.suppfunc import SuppFunc

from cvxqop.errors import ProblemError

__all__ = ["KNOWN", "Holdings", "Slot", "aside", "holdings"]

# fmt: off
KNOWN = frozenset((
    "AddExpression", "And", "Concatenate", "DivExpression", "Equality", "ExpCone", "FiniteSet",
    "GeoMean", "GeoMeanApprox", "Hstack", "Inequality", "MatrixFrac", "Maximize", "Minimize",
    "MulExpression", "NegExpression", "NonNeg", "NonPos", "Not", "OpRelEntrConeQuad", "Or",
    "PSD", "PartialProblem", "Pnorm", "PnormApprox", "PowCone3D", "PowCone3DApprox",
    "PowConeND", "Power", "PowerApprox", "Prod", "Promote", "QuadForm", "RelEntrConeQuad",
    "SOC", "Sum", "SuppFuncAtom", "SvecPSD", "SymbolicQuadForm", "Trace", "Vstack", "Xor",
    "Zero", "abs", "asinh", "atanh", "broadcast_to", "ceil", "condition_number", "conj", "conv",
    "convolve", "cos", "cummax", "cumprod", "cumsum", "diag_mat", "diag_vec", "dist_ratio",
    "dotsort", "entr", "exp", "eye_minus_inv", "floor", "gen_lambda_max", "gmatmul",
    "hermitian_wrap", "huber", "imag", "index", "indicator", "kl_div", "kron", "lambda_max",
    "lambda_sum_largest", "length", "log", "log1p", "log_det", "log_sum_exp", "logistic", "max",
    "maximum", "min", "minimum", "multiply", "nonneg_wrap", "nonpos_wrap", "norm1", "norm_inf",
    "normNuc", "normcdf", "nsd_wrap", "one_minus_pos", "perspective", "pf_eigenvalue",
    "psd_wrap", "quad_over_lin", "quantum_rel_entr", "real", "rel_entr", "reshape", "sigma_max",
    "sign", "sin", "sinh", "skew_symmetric_wrap", "special_index", "sum_largest",
    "symmetric_wrap", "tan", "tanh", "tr_inv", "transpose", "upper_tri", "von_neumann_entr",
    "xexp",
))
# fmt: on
"""Classes of CVXPY 1.9 that a problem may be written with, beside its leaves."""

_LEAVES = (cp.Variable, cp.Constant, cp.Parameter)
_NODES = (cp.Expression, cp.Constraint, cp.Minimize, cp.Maximize)
_INERT = (numbers.Number, str, bytes, slice, type, Enum, type(None), type(...), np.generic)

# A leaf's own numbers are the matter of who asks for the leaf. Derivatives and dual values are
# answers and no part of a problem. The rest follows from what is looked at.
_SKIPPED = frozenset(
    {"_value", "delta", "gradient", "dual_variables", "_lazy_canonical_form", "_eta"}
    | {"_select_mat", "_orig_key", "_keep", "_solve_kwargs"}
)


_INDICES = ("key", "boolean", "boolean_idx", "integer", "integer_idx", "sparse_idx", "sparsity")


@dataclass(frozen=True, eq=False)
class Slot:
    """An array that ``owner`` keeps in its attribute ``name``, outside the tree of arguments."""

    owner: Any
    name: str
    array: Any

    @property
    def is_index(self) -> bool:
        """Whether the entries are positions and not numbers."""
        return self.name in _INDICES

    @property
    def where(self) -> str:
        """Where the array is, in words."""
        if isinstance(self.owner, _LEAVES):
            what = {"bounds": "bounds", "key": "indices"}.get(self.name, "attributes")
            return f"the {what} of the {type(self.owner).__name__.lower()} {self.owner.name()}"
        what = "the indices of an expression in square brackets" if self.is_index else "an array"
        return what if self.is_index else f"{what} inside {type(self.owner).__name__}"


@dataclass(frozen=True, eq=False)
class Holdings:
    """What an object holds: nodes (expressions, constraints and leaves), and arrays in slots."""

    nodes: list[Any] = field(default_factory=list)
    slots: list[Slot] = field(default_factory=list)


def holdings(root: Any) -> Holdings:
    """Nodes and slots of an expression, a constraint, an objective or a list of them, once each.

    Raises
    ------
    ProblemError
        If something occurs whose contents are not known; it is named.
    """
    found = Holdings()
    seen: dict[int, Any] = {}  # objects by their id, which they keep while they stand here
    stack: list[tuple[Any, Any, str]] = [(root, None, "")]
    while stack:
        item, owner, name = stack.pop()
        if isinstance(item, _INERT) or id(item) in seen:
            continue
        seen[id(item)] = item
        if isinstance(item, np.ndarray) or sp.issparse(item):
            if item.ndim:
                found.slots.append(Slot(owner, name, item))
        elif isinstance(item, _NODES):
            found.nodes.append(item)
            stack.extend((value, item, key) for key, value in reversed(list(_state(item))))
        elif isinstance(item, list | tuple | set | frozenset):
            numbers_only = len(item) and all(isinstance(i, numbers.Real) for i in item)
            if numbers_only and (name == "key" or isinstance(item, list)):
                found.slots.append(Slot(owner, name, np.asarray(item)))
            else:
                stack.extend((value, owner, name) for value in reversed(list(item)))
        elif isinstance(item, Mapping):
            for key, value in item.items():
                inner = key if isinstance(key, str) else name
                stack.extend([(key, owner, inner), (value, owner, inner)])
        elif isinstance(item, cp.Problem):
            stack.extend((value, owner, name) for value in (*item.constraints, item.objective))
        elif isinstance(item, SuppFunc):
            stack.extend((value, owner, name) for value in (*item.constraints, item.x))
        else:
            raise ProblemError(
                f"The problem holds an object of type {type(item).__name__} "
                f"({'in ' + type(owner).__name__ if owner is not None else 'on its own'}), and "
                "what that keeps cannot be looked at. Write the term with arrays and parameters."
            )
    return found


def aside(node: Any) -> list[Any]:
    """The expressions and constraints that a node keeps beside its arguments, and theirs."""
    values = [value for name, value in _state(node) if name != "args"]
    return holdings(values).nodes


def _state(node: Any) -> Iterator[tuple[str, Any]]:
    """Name and value of what a node keeps, after its class was found to be known."""
    if getattr(node, "holds_records", False):
        yield "args", node.args  # its records are private by themselves
        return
    if isinstance(node, cp.CallbackParam):
        raise ProblemError(
            f"The parameter {node.name()} is a CallbackParam: its value comes from a function, "
            "and what that reads cannot be looked at. Use cp.Parameter and set its value."
        )
    own = type(node).__module__.split(".")[0] == "cvxpy"
    if not own or not (isinstance(node, _LEAVES) or type(node).__name__ in KNOWN):
        raise ProblemError(
            f"{type(node).__name__} is not known: what it keeps beside its arguments cannot be "
            "looked at. Write the term with the atoms of CVXPY 1.9."
        )
    # A copy, taken at once: another thread may let CVXPY remember something on the node meanwhile.
    for name, value in vars(node).copy().items():
        if name == "p" and hasattr(node, "_keep"):
            yield name, _given_weights(node)
        elif name not in _SKIPPED and not name.endswith("__cache__"):
            yield name, value


def _given_weights(mean: Any) -> Any:
    """The weights of a geometric mean as they were given: CVXPY drops those that are zero."""
    weights = np.zeros(np.shape(mean._keep))
    weights[mean._keep] = mean.p
    return weights
