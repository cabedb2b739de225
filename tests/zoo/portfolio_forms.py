"""Means, scatter, portfolios: what is linear or quadratic in a record."""

from forms import group, smoothed

of = group("Means and scatter", private="Q", bounds="row_norm=1, offset=1.2")
folio = group("Portfolios", private="r", bounds="row_norm=1.2")
refused = group("Means and scatter", hope="refused", private="Q", bounds="row_norm=1, offset=1.2")

SIMPLEX = "cp.sum(w) == 1, w >= 0"

FORMS = [
    of("mean", "Mean of points", "cp.sum_squares(Q - mu)"),
    of("mean-ones", "The same with a column of ones", "cp.sum_squares(Q - np.ones((n, 1)) @ cp.reshape(mu, (1, 3), order='F'))"),
    of("mean-number", "Mean of numbers", "cp.sum_squares(y - b)", private="y", bounds="row_norm=1, offset=1.5"),
    of("mean-simplex", "Mean of probabilities on the simplex", "cp.sum_squares(Z - mu)", "mu >= 0, cp.sum(mu) == 1", private="Z"),
    of("mean-huber", "Robust mean", "cp.sum(cp.huber(Q - np.ones((n, 1)) @ cp.reshape(mu, (1, 3), order='F'), 0.1))"),
    of("spatial-huber", "Huber of the distance", "cp.sum(cp.huber(cp.norm(Q - np.ones((n, 1)) @ cp.reshape(mu, (1, 3), order='F'), 2, axis=1), 0.2))"),
    of("covariance", "Second moments, positive semidefinite", "cp.sum_squares(F - np.ones((n, 1)) @ cp.reshape(C3, (1, 9), order='C')) + cp.sum(cp.abs(C3))", "C3 >> 0",
       private="F", bounds="row_norm=1, offset=1", variables={"C3": (3, 3)}),
    of("graphical-lasso", "Graphical lasso", "-cp.log_det(C3) + cp.sum(cp.multiply(Q, Q @ C3)) / n + 0.01 * cp.sum(cp.abs(C3))",
       variables={"C3": {"shape": (3, 3), "symmetric": True}}, bounds="row_norm=1"),
    of("principal-subspace", "Principal subspace (Fantope)", "cp.Maximize(cp.sum(cp.multiply(Q, Q @ C3)))", "C3 >> 0, C3 << np.eye(3), cp.trace(C3) == 1",
       variables={"C3": {"shape": (3, 3), "symmetric": True}}, bounds="row_norm=1"),
    of("nearest-direction", "A linear loss on a ball", "-cp.sum(Q @ mu)", "cp.norm(mu, 2) <= 1", bounds="row_norm=1"),
    refused("precision-from-moments", "Subspace from a matrix", "cp.Maximize(cp.trace((Q.T @ Q) @ C3))", "C3 >> 0, C3 << np.eye(3), cp.trace(C3) == 1",
            variables={"C3": {"shape": (3, 3), "symmetric": True}}, private="Q", bounds="row_norm=1", says="rows|records|multiply",
            remedy={"objective": "cp.Maximize(cp.sum(cp.multiply(Q, Q @ C3)))"}),
    refused("ellipsoid", "Smallest ellipsoid", "-cp.log_det(C3)", "cp.norm(C3 @ Q.T, axis=0) <= 1", variables={"C3": {"shape": (3, 3), "PSD": True}}, size=50, bounds="row_norm=1",
            says="losses only.*(pos|sum)", remedy={"objective": "-n * cp.log_det(C3) + cp.sum_squares(Q @ C3)", "constraints": ""}),

    folio("markowitz", "Mean and variance by records", "2 * cp.sum_squares(r @ w) / n - cp.sum(r @ w) / n", SIMPLEX),
    folio("markowitz-maximise", "The same, maximised", "cp.Maximize(cp.sum(r @ w) / n - 2 * cp.sum_squares(r @ w) / n)", SIMPLEX),
    folio("minimum-variance", "Least variance about a target", "cp.sum_squares(r @ w - 0.05) / n", SIMPLEX, bounds="row_norm=1.2, offset=0.05"),
    folio("minimum-variance-long-short", "Long and short", "cp.sum_squares(r @ w) / n", "cp.sum(w) == 1, cp.norm1(w) <= 2"),
    folio("tracking", "Tracking an index", "cp.sum_squares(r @ w - r.mean(axis=1)) + 0.1 * cp.norm1(w - 0.25)", SIMPLEX, private="r, r.mean(axis=1)", bounds="row_norm=1.2, offset=0.7"),
    folio("semi-variance", "Losses below a target, squared", "cp.sum(cp.square(cp.pos(0.05 - r @ w)))", SIMPLEX, bounds="row_norm=1.2, offset=0.05"),
    folio("exponential-utility", "Exponential utility", "cp.sum(cp.exp(-r @ w)) / n", SIMPLEX),
    folio("kelly", "Log utility of growth", "cp.Maximize(cp.sum(cp.log(1 + r @ w)) / n)", SIMPLEX, hope="bounded", bounds="row_norm=1.2, argument=(0.4, 1.6)",
          without={"bounds": "row_norm=1.2"}, says="argument"),
    folio("kelly-gross", "Log utility of gross returns", "cp.Maximize(cp.sum(cp.log((1 + r) @ w)) / n)", SIMPLEX, private="1 + r", hope="bounded",
          bounds="row_norm=2.8, argument=(0.4, 1.6)", without={"bounds": "row_norm=2.8"}, says="argument"),
    smoothed(folio)("cvar", "Conditional value at risk", "a + cp.sum(cp.pos(-r @ w - a)) / (0.1 * n)", SIMPLEX, argument="-r @ w - a", weight="1 / (0.1 * n)", middle=0.5),
    smoothed(folio)("cvar-brackets", "The same with brackets", "a + cp.sum(cp.pos(-(r @ w) - a)) / (0.1 * n)", SIMPLEX, argument="-(r @ w) - a", weight="1 / (0.1 * n)", middle=0.5),
    smoothed(folio)("mean-deviation", "Mean absolute deviation", "cp.sum(cp.abs(r @ w - 0.05)) / n", SIMPLEX, bounds="row_norm=1.2, offset=0.05", argument="r @ w - 0.05", weight="1 / n"),
    group("Portfolios", hope="refused")("markowitz-moments", "Mean and covariance computed before", "cp.Maximize(r.mean(axis=0) @ w - 2 * cp.quad_form(w, np.cov(r.T)))", SIMPLEX,
          private="r", bounds="row_norm=1.2", says="records|rows|sum_squares",
          remedy={"objective": "2 * cp.sum_squares(r @ w) / n - cp.sum(r @ w) / n"}),
]  # fmt: skip
