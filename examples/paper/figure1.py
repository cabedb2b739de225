"""Figure 1 of the paper: bounds on the utility against δ, exact and inexact solves.

    python examples/paper/figure1.py            # PNG and CSV in docs/paper, minutes
    python examples/paper/figure1.py --quick    # fewer points, seconds

L = 1, ρ = 1, n = 10, d = 12, D = 1; ε = 1, 2, 3, 4; τ = η = 10⁻³ on the right. replace_one.
"""

import warnings

import cvxpy as cp
import drawing
import numpy as np
import published
from published import INEXACT, D, L, N
from scipy.optimize import minimize
from scipy.special import expit, softmax

import cvxqop
from cvxqop.privacy.paper import profile as paper

EPSILONS = (1.0, 2.0, 3.0, 4.0)
CURVES = {
    "published_code": "published code, in double precision",
    "published_equation": "its formulas, in logarithms",
    "paper": "the paper, halves restored",
    "cvxqop": "cvxqop, squared loss",
    "cvxqop_other": "cvxqop, other losses of one row",
}


def constants(m, epsilons, deltas, error, as_published):
    """The paper's constants, in logarithms. ε2 only divides σ̃, and is set to 1 here."""
    return paper.calibrate(
        smoothness=L, hessian_rank=published.RANK, d=D, m=m, epsilon1=epsilons[0],
        epsilon2=1.0 if error else 0.0, delta1=deltas[0], delta2=deltas[1], delta3=deltas[2],
        delta4=deltas[3], tau=error, eta=error, as_published=as_published,
    )  # fmt: skip


def exact_bound(epsilon, delta, as_published, start):
    """½σ²m D² at the best m and shares of δ."""

    def log_bound(z):
        m, part = D + 1 + np.exp(z[0]), expit(z[1])
        deltas = (delta * part, 0.0, delta * (1 - part), 0.0)
        found = constants(m, (epsilon, 0.0), deltas, 0.0, as_published)
        return np.log(0.5 * found.sigma2 * m * published.SQUARED_DISTANCE)

    return _minimum(log_bound, [np.log(40.0), 3.0], start)


def inexact_bound(epsilon, delta, as_published, start):
    """The paper's bound for τ = η = 10⁻³ at the best m and shares of ε and δ; ε2 ≤ 1."""

    def log_bound(z):
        m, second = D + 1 + np.exp(z[0]), min(epsilon * expit(z[1]), 1.0)
        deltas = delta * softmax([0.0, z[2], z[3], z[4]])
        epsilons = (epsilon - second, second)
        found = constants(m, epsilons, deltas, INEXACT, as_published)
        noise = found.sigma_tilde / second
        return np.log(published.inexact_bound(found.sigma2, m, noise))

    first = [np.log(60.0), -1.5, -1.0, -2.0, -1.0] if start is None else start
    return _minimum(log_bound, [np.log(70.0), -1.5, -2.5, -24.0, -2.5], first)


def _minimum(log_bound, *starts):
    """Nelder and Mead, afresh and from where the last δ ended: value and place of the better."""

    def guarded(z):
        return log_bound(z) if np.all(np.abs(z) < 40.0) else 1e3

    ends = []
    for start in starts:
        place = start
        for size in (0.05, -0.03) if place is not None else ():
            # Steps in proportion: the coordinates differ in size.
            simplex = np.vstack([place, place + size * np.diag(1.0 + np.abs(place))])
            options = {"initial_simplex": simplex, "xatol": 1e-3, "fatol": 1e-5, "maxfev": 300}
            found = minimize(guarded, place, method="Nelder-Mead", options=options)
            place = found.x
        if place is not None:
            ends.append((float(np.exp(found.fun)), place))
    return min(ends, key=lambda end: end[0])


def our_bound(epsilon, delta, exact, squared):
    """What cvxqop promises for the same constants.

    A squared loss is solved from its released quadratic form: the accuracy of the solve is free and
    only adds its gap τ. Other losses end in a Gaussian release, here of a distance certified to
    10⁻³; that adds ½ n L σ_rel² + G √d σ_rel (theory §8).
    """
    theta, X, y = cp.Variable(D), np.zeros((N, D)), np.zeros(N)
    residual = X @ theta - y
    loss = cp.sum_squares(residual) if squared else cp.sum(cp.square(cp.pos(residual)))
    error = 0.0 if exact else INEXACT
    radius = np.sqrt(published.SQUARED_DISTANCE) + error
    plan = cvxqop.plan(
        cp.Problem(cp.Minimize(0.5 * loss)), private=[X, y],
        bounds=cvxqop.Bounds(row_norm=1.0, offset=1.0), epsilon=epsilon, delta=delta,
        anchor=cvxqop.CommonMinimizer(np.zeros(D), error=error), radius=radius,
        accuracy=INEXACT / radius, perturbation="wishart",
    )  # fmt: skip
    bound = plan.excess_risk_bound(radius)
    release = plan.mechanism.release
    if release is not None:
        scale = release.scale
        bound += 0.5 * N * L * scale**2 + published.SLOPE * np.sqrt(D) * scale
    return bound + error


def curves(epsilons, deltas, fine):
    """One row a panel, ε and δ; the published code on the finer grid."""
    values = {}
    for panel, bound in (("exact", exact_bound), ("inexact", inexact_bound)):
        exact = panel == "exact"
        for epsilon in epsilons:
            for name, as_published in (("published_equation", True), ("paper", False)):
                place = None
                for delta in deltas:
                    value, place = bound(epsilon, delta, as_published, place)
                    values[panel, epsilon, delta, name] = value
            for delta in deltas:
                values[panel, epsilon, delta, "cvxqop"] = our_bound(epsilon, delta, exact, True)
                if not exact:
                    other = our_bound(epsilon, delta, exact, False)
                    values[panel, epsilon, delta, "cvxqop_other"] = other
            for delta in fine:
                value = published.optimised_bound(epsilon, delta, exact)
                values[panel, epsilon, delta, "published_code"] = value
    keys = sorted({key[:3] for key in values})
    return [
        dict(zip(("panel", "epsilon", "delta"), key, strict=True))
        | {name: values.get((*key, name)) for name in CURVES}
        for key in keys
    ]


def draw(rows, file):
    """Two panels; colour is ε, the kind of line is who computed it."""
    made = drawing.panels(1, 2, size=(9, 4.8), sharey=True)
    if made is None:
        return
    figure, axes = made
    colours = (drawing.BLUE, drawing.ORANGE, drawing.GREEN, drawing.PURPLE)
    kinds = dict(zip(CURVES, (".", "-", "--", "-.", ":"), strict=True))
    for ax, panel in zip(axes, ("exact", "inexact"), strict=True):
        for colour, epsilon in zip(colours, EPSILONS, strict=True):
            here = [r for r in rows if r["panel"] == panel and r["epsilon"] == epsilon]
            for name, kind in kinds.items():
                points = [(r["delta"], r[name]) for r in here if r[name] is not None]
                if points:
                    style = {"ms": 3.5, "alpha": 0.8} if kind == "." else {"lw": 1.5}
                    ax.plot(*np.array(points).T, kind, color=colour, **style)
        ax.set(xscale="log", yscale="log", xlabel="failure probability δ")
    axes[0].set(ylabel="bound on the expected excess risk", title="exact solve")
    axes[1].set_title("inexact solve, τ = η = 0.001")
    for colour, epsilon in zip(colours, EPSILONS, strict=True):
        axes[0].plot([], [], color=colour, lw=4, label=f"ε = {epsilon:g}")
    axes[0].legend(loc="center", bbox_to_anchor=(0.5, 0.36), ncols=4, handlelength=1.2)
    for name, kind in kinds.items():
        axes[1].plot([], [], kind, color=drawing.BLACK, label=CURVES[name])
    figure.legend(*axes[1].get_legend_handles_labels(), loc="outside lower center", ncols=3)
    drawing.save(figure, file)


def main():
    options = drawing.arguments(__doc__, "figure1")
    epsilons = EPSILONS[:1] if options.quick else EPSILONS
    deltas = np.logspace(-5, -2, 2 if options.quick else 10).tolist()
    fine = deltas[:1] if options.quick else np.logspace(-5, -2, 19).tolist()
    with warnings.catch_warnings():
        # Above 1/n, as published, δ is warned of.
        warnings.simplefilter("ignore", cvxqop.PrivacyWarning)
        rows = curves(epsilons, deltas, fine)
    drawing.table(options.out.with_suffix(".csv"), rows)
    draw(rows, options.out)


if __name__ == "__main__":
    main()
