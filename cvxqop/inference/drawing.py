"""Pictures of inference. matplotlib is an extra and is imported when a plot is made."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["forest", "path"]

Array = npt.NDArray[np.float64]


def forest(
    names: Sequence[str],
    released: Array,
    lower: Array,
    upper: Array,
    remarks: Sequence[str],
    level: float,
) -> Figure:
    """One line an interval, a dot where the release is; grey and dashed with a remark."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.0, 1.0 + 0.28 * len(names)), layout="constrained")
    axes = figure.subplots()
    places = np.arange(len(names))[::-1]
    plain = np.array([not remark for remark in remarks])
    for chosen, colour, style, label in (
        (plain, "C0", "-", f"{level:.4g} interval"),
        (~plain, "0.6", ":", "not determined"),
    ):
        if np.any(chosen):
            axes.hlines(
                places[chosen], lower[chosen], upper[chosen], colour, style, label=label, lw=2.5
            )
            axes.plot(released[chosen], places[chosen], "o", color=colour, ms=4)
    axes.axvline(0.0, color="0.8", lw=1.0, zorder=0)
    axes.set_yticks(places, names)
    axes.set_xlabel("released (dot), and where the solution without privacy may be")
    axes.legend(fontsize=8, loc="best")
    return figure


def path(values: Array, gain: Array, error: Array, thetas: Array, index: int) -> Figure:
    """The estimated training loss against the first with two standard errors; the coefficients."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9.0, 3.4), layout="constrained")
    risk, coefficients = figure.subplots(1, 2)
    positive = values[values > 0.0]
    x = np.where(values > 0.0, values, 0.5 * positive.min())
    risk.plot(x, gain, "o-", ms=3)
    risk.fill_between(x, gain - 2.0 * error, gain + 2.0 * error, alpha=0.2, label="± 2 s.e.")
    risk.axhline(0.0, color="0.7", lw=1.0)
    risk.set(xlabel="λ", ylabel="training loss − first", title="Estimate, without its bias")
    coefficients.plot(x, thetas, lw=1.0)
    coefficients.set(xlabel="λ", ylabel="coefficients", title="Solutions")
    for axes in (risk, coefficients):
        axes.set_xscale("log")
        axes.axvline(x[index], color="C3", linestyle=":", label="chosen")
    risk.legend(fontsize=8)
    return figure
