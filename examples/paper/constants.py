"""The mean curvature σ²m that privacy asks for, in units of L, against the dimension d.

    python examples/paper/constants.py            # PNG and CSV in docs/paper, minutes
    python examples/paper/constants.py --quick    # fewer dimensions, seconds

replace_one, records of one row, no guard. Left: figure 2 of the paper, ε = ½, δ = 10⁻², m = 2d and
δ in halves. Right: ε = 1, δ = 10⁻⁶, everything that is free at its best.
"""

import warnings

import cvxpy as cp
import drawing
import numpy as np
import published
from scipy.optimize import minimize_scalar
from scipy.special import expit

import cvxqop
from cvxqop.privacy.paper import profile as paper
from cvxqop.privacy.wishart import spectral

FIXED, BEST = (0.5, 1e-2), (1.0, 1e-6)
CURVES = {
    "published_code": ("published code, double precision", "o", drawing.RED),
    "published_equation": ("its formulas, in logarithms", "-", drawing.RED),
    "paper": ("the paper, halves restored", "--", drawing.ORANGE),
    "spectral_other": ("spectral bound, any loss", ":", drawing.PURPLE),
    "spectral": ("spectral bound, squared loss", "-.", drawing.PURPLE),
    "exact_other": ("exact, other losses of one row", (0, (1, 1)), drawing.BLUE),
    "exact": ("exact, squared loss", "-", drawing.BLUE),
}


def of_paper(d, m, epsilon, delta, as_published, part=0.5):
    """σ²m of the paper's constants; ``part`` of δ is δ1, the rest δ3."""
    found = paper.calibrate(
        smoothness=1.0, hessian_rank=1, d=d, m=m, epsilon1=epsilon, epsilon2=0.0,
        delta1=delta * part, delta2=0.0, delta3=delta * (1 - part), delta4=0.0, tau=0.0, eta=0.0,
        as_published=as_published,
    )  # fmt: skip
    return found.sigma2 * m


def of_spectral(d, m, epsilon, delta, quadratic):
    """σ²m of the spectral bound of the library."""
    found = spectral.calibrate(
        epsilon, delta, smoothness=1.0, trace=1.0, dimension=d, degrees_of_freedom=m,
        quadratic=quadratic, edelman=True,
    )  # fmt: skip
    return found.sigma2 * m


def of_exact(d, m, epsilon, delta, quadratic):
    """σ²m of the exact accountant; m = None chooses it."""
    theta, X, y = cp.Variable(d), np.zeros((2, d)), np.zeros(2)
    residual = X @ theta - y
    loss = cp.sum_squares(residual) if quadratic else cp.sum(cp.square(cp.pos(residual)))
    plan = cvxqop.plan(
        cp.Problem(cp.Minimize(0.5 * loss)), private=[X, y],
        bounds=cvxqop.Bounds(row_norm=1.0, offset=1.0),
        epsilon=epsilon, delta=delta, anchor=cvxqop.CommonMinimizer(np.zeros(d)), radius=1.0,
        perturbation=cvxqop.Wishart(degrees_of_freedom=m),
    )  # fmt: skip
    return plan.mechanism.mean_curvature


def best(value, d):
    """The least over m, by golden section in log(m − d − 1)."""
    found = minimize_scalar(
        lambda t: np.log(value(d + 1 + np.exp(t))),
        bounds=(np.log(0.5), np.log(40.0 * (d + 10.0))), method="bounded",
        options={"xatol": 1e-2},
    )  # fmt: skip
    return float(np.exp(found.fun))


def best_paper(d, epsilon, delta, as_published):
    """The least over m and the share of δ1."""

    def at(m):
        found = minimize_scalar(
            lambda z: np.log(of_paper(d, m, epsilon, delta, as_published, expit(z))),
            bounds=(-6.0, 25.0), method="bounded", options={"xatol": 0.02},
        )  # fmt: skip
        return float(np.exp(found.fun))

    return best(at, d)


def rows(dimensions):
    """One row a panel and dimension, in units of L."""
    table = []
    for d in dimensions:
        epsilon, delta = FIXED
        m, half = 2 * d, delta / 2
        sigma2 = published.alpha_sigma2(1.0, epsilon, half, half, d, m)[1]
        table.append({
            "panel": "m = 2d", "d": d, "published_code": float(sigma2 * m),
            "published_equation": of_paper(d, m, epsilon, delta, True),
            "paper": of_paper(d, m, epsilon, delta, False),
            "spectral_other": of_spectral(d, m, epsilon, delta, False),
            "spectral": of_spectral(d, m, epsilon, delta, True),
            "exact_other": of_exact(d, m, epsilon, delta, False),
            "exact": of_exact(d, m, epsilon, delta, True),
        })  # fmt: skip
    return table + [best_row(d) for d in dimensions]


def best_row(d):
    """The right panel at one dimension."""
    return {
        "panel": "best m", "d": d, "published_code": None,
        "published_equation": best_paper(d, *BEST, True),
        "paper": best_paper(d, *BEST, False),
        "spectral_other": best(lambda m: of_spectral(d, m, *BEST, False), d),
        "spectral": best(lambda m: of_spectral(d, m, *BEST, True), d),
        "exact_other": of_exact(d, None, *BEST, False),
        "exact": of_exact(d, None, *BEST, True),
    }  # fmt: skip


def draw(table, file):
    """Two panels on log axes; the left one is cut at 10²⁰."""
    made = drawing.panels(1, 2, size=(9, 4.8))
    if made is None:
        return
    figure, axes = made
    titles = {
        "m = 2d": "ε = ½, δ = 10⁻², m = 2d (figure 2 of the paper)",
        "best m": "ε = 1, δ = 10⁻⁶, best m and shares",
    }
    for ax, (panel, title) in zip(axes, titles.items(), strict=True):
        here = [r for r in table if r["panel"] == panel]
        d = np.array([r["d"] for r in here], float)
        for name, (label, kind, colour) in CURVES.items():
            value = np.array([np.nan if r[name] is None else r[name] for r in here], float)
            if kind == "o":
                ax.plot(d, value, "o", color=colour, mfc="none", label=label)
            else:
                ax.plot(d, value, linestyle=kind, color=colour, lw=1.7, label=label)
        exact = np.array([r["exact"] for r in here])
        ax.plot(d, exact[-1] / 1.5 * np.sqrt(d / d[-1]), color=drawing.GREY, lw=0.8, label="∝ √d")
        ax.plot(d, 1.5 * here[-1]["paper"] * d / d[-1], color=drawing.GREY, lw=0.8, ls="--",
                label="∝ d")  # fmt: skip
        ax.set(xscale="log", yscale="log", title=title, xlabel="dimension d")
    axes[0].set_ylim(1.0, 1e20)
    axes[0].set_ylabel("mean curvature σ²m / L")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
    drawing.save(figure, file)


def main():
    options = drawing.arguments(__doc__, "constants")
    dimensions = [5, 100] if options.quick else [
        2, 3, 5, 8, 12, 20, 30, 50, 80, 100, 120, 150, 200, 300, 500, 1000,
    ]  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cvxqop.PrivacyWarning)  # δ above 1/n, as published
        found = rows(dimensions)
    drawing.table(options.out.with_suffix(".csv"), found)
    draw(found, options.out)


if __name__ == "__main__":
    main()
