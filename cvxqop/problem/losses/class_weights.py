"""Public weights of classes, which the library applies to private labels record by record.

The weight of a record is that of the class nearest to its label, a function of the record alone:
every constant of the loss counts the largest of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NoReturn

import numpy as np
import scipy.sparse as sp

from cvxqop.errors import OptionError
from cvxqop.problem.erm import ERM
from cvxqop.problem.losses.gradient_term import GradientTerm
from cvxqop.problem.losses.margin_term import MarginTerm
from cvxqop.problem.losses.output_terms import LabelledTerm
from cvxqop.problem.losses.recognised import RecognisedLoss
from cvxqop.problem.losses.scalar import logistic
from cvxqop.problem.losses.terms import Term
from cvxqop.problem.records.beside import ClassWeights
from cvxqop.problem.records.pieces import Column, Leaf, Piece, ZeroOneLeaf, signs_of

__all__ = ["weighed"]

Classes = tuple[float, ...]


def weighed(erm: ERM, class_weight: Mapping[float, float] | None) -> ERM:
    """The problem with the loss of every record multiplied by the weight of its class.

    Raises
    ------
    OptionError
        If a loss has no labels of classes, or the classes are others.
    """
    if class_weight is None:
        return erm
    given = sorted((float(key), float(weight)) for key, weight in class_weight.items())
    classes, weights = zip(*given, strict=True)
    texts = iter(erm.texts.terms)
    assert isinstance(erm.loss, RecognisedLoss)
    terms = []
    for term in erm.loss.terms:
        text, *_ = [next(texts) for _ in term.losses]
        terms.append(_weighed(term, classes, weights, text))
    return replace(erm, loss=replace(erm.loss, terms=tuple(terms)))


def _weighed(term: Term, classes: Classes, weights: Classes, text: str) -> Term:
    if isinstance(term, LabelledTerm):
        _check(classes, tuple(map(float, range(term.outputs.count))), text)
        return replace(term, classes=weights)
    rows: Any = term.rows
    leaf, known = _labels(term)
    if leaf is None:
        _refuse(text)
    _check(classes, known, text)
    inside = (-1.0, 1.0) if isinstance(leaf, ZeroOneLeaf) else classes
    zero = sp.csr_array((1, rows.dimension))
    piece = Piece((Column(leaf, np.ones(1)),), None, zero, np.ones(1))
    own = ClassWeights((piece,), classes=inside, weights=weights)
    return replace(term, rows=rows.with_beside(replace(rows.beside, classes=own)))


def _labels(term: Term) -> tuple[Leaf | None, Classes]:
    """The array of labels, and what they are."""
    rows: Any = term.rows
    beside = rows.beside
    if not isinstance(term, MarginTerm) or isinstance(term, GradientTerm):
        return None, ()
    if beside.labels is None:
        leaf = next(iter(signs_of(rows.pieces)), None)  # of two, a feature is the inner one
        return leaf, (0.0, 1.0) if isinstance(leaf, ZeroOneLeaf) else (-1.0, 1.0)
    weights = {leaf.key for own in beside.weights if own for p in own.pieces for leaf in p.leaves}
    leaves = [leaf for piece in beside.labels.pieces for leaf in piece.leaves if leaf.private]
    found = {leaf.key: leaf for leaf in leaves if leaf.width == 1 and leaf.key not in weights}
    named = any(loss is logistic or loss.name == logistic.name for loss, _ in term.losses)
    return next(iter(found.values())) if named and len(found) == 1 else None, (0.0, 1.0)


def _check(given: Classes, known: Classes, text: str) -> None:
    if given != known:
        names = ", ".join(f"{key:g}: …" for key in known)
        raise OptionError(
            f"class_weight: the labels of {text} are the classes {{{names}}}; give one weight for "
            "each."
        )


def _refuse(text: str) -> NoReturn:
    raise OptionError(
        f"class_weight: the private loss {text} has no labels of classes that are known: y of "
        "multiply(y, X @ w) is one, ±1, and so is y of sum(logistic(t) - multiply(y, t)), 0 or 1, "
        "and Y of sum(log_sum_exp(T, axis=1) - sum(multiply(Y, T), axis=1)). Leave class_weight "
        "out, or list one weight a record and state Bounds(row_norm=…, weight=…)."
    )
