"""What CVXPY shares between threads and between copies: its trees, their caches, its ids.

CVXPY keeps the canonical form of a leaf on the leaf, with the leaf's id in it. A copy has another
id and inherits the form, and compiled code that looks the old id up ends the process. Ids come
from a counter of the process, so that variables from another process may have the same.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterable, Iterator
from typing import Any

import cvxpy as cp
from cvxpy.lin_ops import lin_utils
from scipy.sparse.linalg import ArpackError

from cvxqop._cvxpy.nodes import leaves, nodes
from cvxqop.errors import ProblemError

__all__ = ["SHARED", "claim_ids", "forget_forms", "reading"]

SHARED = threading.RLock()
"""Held while CVXPY's trees are read, canonicalised or written into."""


@contextlib.contextmanager
def reading() -> Iterator[None]:
    """Hold the lock while a problem is read and checked, before anything is spent.

    Raises
    ------
    ProblemError
        CVXPY could not find out whether a matrix of the problem is positive semidefinite.
    """
    with SHARED:
        try:
            yield
        except ArpackError:
            raise ProblemError(
                "CVXPY's test whether a matrix of the problem is positive semidefinite did not "
                "converge. Where it is, say so: cp.quad_form(w, cp.psd_wrap(P))."
            ) from None


_FORM = "_canonical_form"


def forget_forms(roots: Iterable[Any]) -> None:
    """Drop the canonical forms that nodes remember: they hold the ids of what they were copied
    from, and another copy would inherit ours."""
    for root in roots:
        for node in nodes(root):
            for name in [
                n for n in vars(node).copy() if n.startswith("_lazy") and n.endswith(_FORM)
            ]:
                delattr(node, name)


def claim_ids(roots: Iterable[Any]) -> None:
    """See that no id of a variable or parameter is met twice.

    CVXPY's counter starts anew in every process: it is moved past the ids that occur, so that its
    own auxiliary variables get others.

    Raises
    ------
    ProblemError
        If two variables of the problem have one id, which CVXPY takes for one variable.
    """
    owners: dict[int, Any] = {}
    for root in roots:
        for leaf in leaves(root):
            if isinstance(leaf, cp.Constant):
                continue
            if owners.setdefault(leaf.id, leaf) is not leaf:
                raise ProblemError(
                    f"The problem holds two objects with the id of {leaf.name()}, which CVXPY "
                    "takes for one variable: one of them came from another process or out of a "
                    "pickle. Write the problem with one of them, or make the variables anew here."
                )
    counter = lin_utils.ID_COUNTER
    counter.count = max(counter.count, 1 + max(owners, default=0))
