"""How a problem was read, for people: shapes and names, never an entry of an array."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from cvxqop.problem.erm import ERM
from cvxqop.problem.losses.declared_loss import DeclaredLoss
from cvxqop.problem.losses.open_loss import OpenLoss, open_parts
from cvxqop.problem.losses.output_terms import LabelledTerm, RadialTerm
from cvxqop.problem.losses.recognised import RecognisedLoss
from cvxqop.problem.losses.terms import Term
from cvxqop.problem.reading.public import Stacking
from cvxqop.problem.records.pieces import Piece
from cvxqop.problem.records.rows import AffineRows

__all__ = ["describe", "row_text"]


def describe(erm: ERM) -> str:
    """Text of ``cvxqop.explain``.

    The number of records is for the holder of the data: under add_remove it is private.
    """
    loss = erm.loss
    if isinstance(loss, RecognisedLoss):
        own = _recognised_lines(erm, loss)
    else:
        assert isinstance(loss, DeclaredLoss)
        own = _declared_lines(erm, loss)
    return "\n".join([*own, *_rest_lines(erm)])


def _recognised_lines(erm: ERM, loss: RecognisedLoss) -> list[str]:
    lines = [_headline(loss)]
    weights = [(*pair, own) for term in loss.terms for pair, own in _weights(term)]
    before = ""
    for text, (phi, weight, own) in zip(erm.texts.terms, weights, strict=True):
        size = (
            f"public weights of shape {np.shape(weight)}"
            if np.ndim(weight)
            else "weight 1/n times a constant"
            if erm.mean
            else f"weight {float(weight):g}"
        )
        said = f"    φ = {phi.name}; {_curvature(phi)}; {size}{own}"
        if text != before:
            lines += [f"  {text}", said]
        elif said != lines[-1]:  # else another output
            lines.append(said)
        before = text
    for text in erm.texts.labels:
        lines.append(f"  {text}")
        lines.append(
            "    labels y, each record's moved to the nearest probability vector"
            if any(isinstance(term, LabelledTerm) for term in loss.terms)
            else "    labels of the logistic loss, cut to its range of slopes"
            if not any("labels" in lacks for _, lacks in open_parts(loss))
            else "    private numbers times the argument, cut to Bounds(offset=…)"
        )
    for text in erm.texts.squares:
        lines.append(f"  {text}")
        lines.append("    completes the square: part of c, cut with it to Bounds(offset=…)")
    for term in loss.terms:
        lines += [f"  {text[6:]}" for text in term.enforced if "class" in text]
        lines += _output_lines(term)
    lines.append(f"Rows: n = {loss.n} records, D = {erm.dimension}")
    if erm.persons is not None:
        lines.append(f"Persons: {erm.persons.count}; {erm.persons.rule}")
    lines += [f"  a = {row}" for row in erm.texts.rows]
    for term in loss.terms:
        lines += _label_lines(term)
    lines += [*_theta_lines(erm), *_array_lines(erm)]
    norm = max(term.row_parts.public_norm for term in loss.terms)
    return [*lines, f"Public part of a: norm {norm:g}"]


def _weights(term: Term) -> Iterator[tuple[tuple[Any, Any], str]]:
    """The losses of a term, each with its private weight in words."""
    own = term.rows.beside.weights or (None,) * len(term.losses)
    for pair, weights in zip(term.losses, own, strict=True):
        leaves = [] if weights is None else [leaf for p in weights.pieces for leaf in p.leaves]
        names = " and ".join(dict.fromkeys(f"{leaf.name}[i]" for leaf in leaves))
        yield pair, f", private weight of {names}, cut to Bounds(weight=…)" if names else ""


def _curvature(phi: Any) -> str:
    if not isinstance(phi, OpenLoss):
        return f"curvature κ = {phi.curvature:g}"
    if phi.lacks == "smoothing":
        return 'not smooth: needs smoothing="auto" or a width'
    return "curvature bounded on bounded ranges only: needs a bounded variable or argument"


def _headline(loss: RecognisedLoss) -> str:
    term = loss.terms[0]
    if term.outputs.count == 1:
        return "Private loss, a sum over records of φ(a'θ + c):"
    argument = "t), t = Θ'a" if isinstance(term, LabelledTerm) else "Θ'a + c)"
    shape = "Θ of shape ({}, {})".format(*term.outputs.layout.shape)
    return f"Private loss, a sum over records of φ({argument}, {shape}:"


def _declared_lines(erm: ERM, loss: DeclaredLoss) -> list[str]:
    lines = ["Private loss, a sum over records that is declared and not recognised:"]
    lines += [f"  {text}" for text in erm.terms]
    lines.append("Declared of the sum of these terms of one record, and not enforced:")
    lines += [f"  {text}" for text in loss.declared.lines(erm.dimension)]
    lines.append(f"n = {loss.n} records, D = {erm.dimension}")
    return [*lines, *_array_lines(erm), *_theta_lines(erm)]


def _theta_lines(erm: ERM) -> list[str]:
    lines, start = ["θ, in this order:"], 0
    for variable in erm.variables:
        stop = start + variable.size
        lines.append(f"  θ[{start}:{stop}] = {variable.name()}, shape {variable.shape}")
        start = stop
    return lines


def _array_lines(erm: ERM) -> list[str]:
    lines = ["Private arrays (row i belongs to record i):"]
    lines += [f"  {name}" for name in erm.private_names]
    if erm.public_data:
        lines.append("Known to everyone:")
        lines += [f"  {name}" for name in erm.public_data]
    return lines


def _rest_lines(erm: ERM) -> list[str]:
    lines = ["Read as:", *(f"  {text}" for text in erm.texts.read_as)] if erm.texts.read_as else []
    lines.append("Public rest of the objective:")
    lines += [f"  {text}" for text in erm.texts.rest] or ["  none"]
    lines.append("Constraints:")
    lines += [f"  {text}" for text in erm.texts.constraints] or ["  none"]
    whose = "" if erm.persons is None else ", of all rows of a person"
    return [*lines, f"Neighbours: {erm.adjacency}{whose}"]


def _output_lines(term: Term) -> list[str]:
    """The Hessian of a record with several outputs."""
    if isinstance(term, LabelledTerm):
        loss, _ = term.losses[0]
        bounds = f"rank ≤ {loss.hessian_rank}, trace ≤ {loss.trace:g} ‖a‖²"
        return [f"  Hessian of a record (diag p − pp') ⊗ aa': {bounds}, Frobenius norm ≤ ½ ‖a‖²"]
    if term.outputs.count == 1:
        return []
    if isinstance(term, RadialTerm):
        return [f"  Hessian of a record: M ⊗ aa', M ≤ κ, of rank ≤ {term.outputs.count}"]
    own = f"the same κaa' in each of {term.outputs.count} outputs, so that they share one S"
    return [f"  Hessian of a record: {own}"]


def _label_lines(term: Term) -> list[str]:
    """A private factor of the whole row takes its public part, such as an intercept's 1, along."""
    lines = []
    pieces = term.rows.pieces if isinstance(term.rows, AffineRows) else ()
    if term.sign is not None:
        lines.append(
            f"  {term.sign.name} is cut to [−1, 1]: row_norm bounds the features alone, without it "
            "and without the 1 of an intercept"
        )
        return lines
    if any(leaf.is_label for piece in pieces for leaf in piece.leaves):
        lines.append("  y is cut to [−1, 1]: row_norm bounds the rest of the private part")
    for piece in pieces:
        names = {column.leaf.name for column in piece.columns if column.leaf.private}
        alone = names and piece.matrix is None and not piece.label_only
        others = [{leaf.name for leaf in other.leaves} for other in pieces if other is not piece]
        if alone and any(names < other for other in others):
            factor = " · ".join(f"{name}[i]" for name in sorted(names))
            lines.append(
                f"  {factor} multiplies the whole row, its public part (the 1 of an intercept) "
                "included: row_norm must bound the norm of all of a"
            )
    return lines


def row_text(pieces: Sequence[Piece], stacking: Stacking) -> str:
    """The row of a record in words, such as private[0][i] on w, 1 on b."""
    parts = []
    for piece in pieces:
        factors = [f"{column.leaf.name}[i]" for column in piece.columns]
        factors += [f"{piece.matrix.name}[i]"] if piece.matrix is not None else []
        touched = set(piece.G.indices.tolist())
        names = [
            v.name()
            for v in stacking.variables
            if touched & set(range(stacking.start(v), stacking.start(v) + v.size))
        ]
        largest = float(np.max(np.abs(piece.G.data), initial=0.0))
        plain = bool(np.all(np.isin(piece.G.data, (0.0, 1.0))))
        factor = "" if plain else f" times a public factor up to {largest:g}"
        parts.append(f"{' · '.join(factors) or '1'}{factor} on {', '.join(names)}")
    return " and ".join(parts)
