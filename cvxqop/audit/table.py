"""The findings of the suite as a table."""

from __future__ import annotations

import platform
from collections.abc import Sequence

import cvxpy as cp
import numpy as np

from cvxqop.audit.row import DELTA, EPSILON
from cvxqop.audit.suite import FALSE_ALARM, Finding

__all__ = ["table"]

HEADINGS = (
    "mechanism",
    "adjacency",
    "loss",
    "neighbours",
    "law",
    "exact",
    "sampled",
    "ε ≥",
    "verdict",
)


def table(findings: Sequence[Finding], *, draws: int, seed: int | None) -> str:
    """Markdown: what was audited, a line for each row, and the verdict of all."""
    lines = [_cells(finding) for finding in findings]
    widths = [max(map(len, column)) for column in zip(HEADINGS, *lines, strict=True)]
    rule = tuple("-" * width for width in widths)
    body = []
    for line in (HEADINGS, rule, *lines):
        padded = (cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        body.append(f"| {' | '.join(padded)} |")
    return "\n".join([*_head(findings, draws, seed), "", *body, "", verdict(findings)])


def verdict(findings: Sequence[Finding]) -> str:
    """One line."""
    failed = [finding for finding in findings if not finding.holds]
    if not failed:
        return f"All {len(findings)} rows pass."
    return f"{len(failed)} of {len(findings)} rows FAIL."


def _head(findings: Sequence[Finding], draws: int, seed: int | None) -> list[str]:
    tests = sum(finding.row.tests for finding in findings)
    source = "the operating system's generator" if seed is None else f"seed {seed}"
    return [
        "# Audit",
        "",
        f"Every row claims ε = {EPSILON:g}, δ = {DELTA:g}, and the whole profile δ(·). Figures are "
        "fractions of what is allowed: a row fails above 1.",
        "",
        "- law: distance of the draws' distribution functions from those stated, of its limit",
        "- exact: largest integrated δ(ε), less the error of the quadrature, of the δ(ε) claimed",
        "- sampled: largest δ(ε) proven by releases, of the δ(ε) claimed; beside it ε proven at δ",
        "",
        f"False alarms: {tests} tests by chance, each at {FALSE_ALARM / tests:.2g}; a suite of "
        f"sound mechanisms fails with probability at most {FALSE_ALARM:g}. Draws: {draws} a row "
        f"and data set, a quarter of it where a release is a solve on the records, a twentieth for "
        f"multinomial and declared losses and where public data set the noise, whose law is "
        f"looked at once a mechanism; {source}. "
        f"Python {platform.python_version()}, numpy {np.__version__}, cvxpy {cp.__version__}.",
    ]


def _cells(finding: Finding) -> tuple[str, ...]:
    row, law, exact, sampled = finding.row, finding.law, finding.exact, finding.sampled
    share = None if law is None else law.worst[1] / law.limit
    proven = None if sampled is None else sampled.attained
    return (
        row.mechanism,
        row.adjacency,
        row.loss.name,
        row.pair.name,
        _number(share),
        _number(None if exact is None else exact.attained, 4),
        _number(proven),
        _number(None if sampled is None else sampled.epsilon),
        "pass" if finding.holds else f"FAIL {finding.error}".strip(),
    )


def _number(value: float | None, digits: int = 2) -> str:
    return "" if value is None else f"{value:.{digits}f}"
