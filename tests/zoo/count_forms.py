"""Counts, rates, times and probabilities: exponential families."""

from forms import group

of = group("Counts, times and probabilities", private="X, k", bounds="row_norm=1, offset=5")
bounded = group("Counts, times and probabilities", private="X, k", hope="bounded")
refused = group("Counts, times and probabilities", hope="refused")

POISSON = "cp.sum(cp.exp(X @ w) - cp.multiply(k, X @ w))"

FORMS = [
    of("poisson-ball", "Poisson on a ball", POISSON, "cp.norm(w, 2) <= 2"),
    of("poisson-box", "Poisson on a box, intercept", "cp.sum(cp.exp(X @ w + b) - cp.multiply(k, X @ w + b))", "cp.abs(w) <= 2, cp.abs(b) <= 2"),
    of("poisson-maximise", "Log-likelihood, maximised", "cp.Maximize(cp.sum(cp.multiply(k, X @ w) - cp.exp(X @ w)))", "cp.norm(w, 2) <= 2"),
    of("poisson-inner", "As an inner product", "cp.sum(cp.exp(X @ w)) - k @ (X @ w)", "cp.norm(w, 2) <= 2"),
    of("poisson-exposure", "With an exposure in the rate", "cp.sum(cp.exp(X @ w + np.log(v)) - cp.multiply(k, X @ w))", "cp.norm(w, 2) <= 2", public="np.log(v)"),
    of("poisson-lasso", "With ℓ1 and a mean", f"{POISSON} / n + 0.005 * cp.norm1(w)", "cp.norm(w, 2) <= 2"),
    bounded("poisson", "Poisson", POISSON, bounds="row_norm=1, offset=5, argument=2", without={"bounds": "row_norm=1, offset=5"}, says="argument"),
    bounded("poisson-labels", "Poisson without a bound on counts", POISSON, "cp.norm(w, 2) <= 2", bounds="row_norm=1, offset=5",
            without={"bounds": "row_norm=1"}, says="offset"),
    bounded("poisson-identity", "Poisson, identity link", "cp.sum(P @ w - cp.multiply(kp, cp.log(P @ w)))", "w >= 0.1, w <= 4", private="P, kp",
            bounds="row_norm=1, offset=8, weight=8, argument=(0.08, 8)", without={"bounds": "row_norm=1"}, says="argument|weight"),
    bounded("poisson-divergence", "The same by kl_div", "cp.sum(cp.kl_div(kp + 0.5, P @ w))", "w >= 0.1, w <= 4", private="P, kp + 0.5",
            bounds="row_norm=1, offset=9, weight=9, argument=(0.08, 8)", without={"bounds": "row_norm=1"}, says="multiply|argument|weight"),
    bounded("negative-binomial", "Negative binomial", "cp.sum(cp.multiply(k + 2, cp.logistic(X @ w - np.log(2))) - cp.multiply(k, X @ w))",
            private="X, k + 2, k", bounds="row_norm=1, offset=5, weight=7", without={"bounds": "row_norm=1"}, says="weight|offset"),
    bounded("binomial", "Hits of m trials", "cp.sum(cp.multiply(m, cp.logistic(X @ w)) - cp.multiply(hits, X @ w))",
            private="X, m, hits", bounds="row_norm=1, offset=5, weight=5", without={"bounds": "row_norm=1"}, says="weight|offset"),
    bounded("binomial-public", "Hits of public numbers of trials", "cp.sum(cp.multiply(m, cp.logistic(X @ w)) - cp.multiply(hits, X @ w))",
            private="X, hits", public="m", bounds="row_norm=1, offset=5", without={"bounds": "row_norm=1"}, says="offset"),
    bounded("survival", "Exponential survival times", "cp.sum(cp.multiply(time, cp.exp(X @ w)) - cp.multiply(event, X @ w))", "cp.norm(w, 2) <= 2",
            private="X, time, event", bounds="row_norm=1, offset=1, weight=2", without={"bounds": "row_norm=1"}, says="weight|offset"),
    bounded("gamma", "Gamma, log link", "cp.sum(cp.multiply(time, cp.exp(-X @ w)) + X @ w)", "cp.norm(w, 2) <= 2",
            private="X, time", bounds="row_norm=1, weight=2", without={"bounds": "row_norm=1"}, says="weight"),
    bounded("exponential-rate", "Exponential, rate linear", "cp.sum(cp.multiply(time, P @ w) - cp.log(P @ w))", "w >= 0.1, w <= 4", private="P, time",
            bounds="row_norm=1, offset=2, argument=(0.08, 8)", without={"bounds": "row_norm=1, offset=2"}, says="argument"),
    bounded("mixture", "Mixture weights", "cp.Maximize(cp.sum(cp.log(L @ w)) / n)", "w >= 0, cp.sum(w) == 1", private="L",
            bounds="row_norm=2.3, argument=(0.2, 1.3)", without={"bounds": "row_norm=2.3"}, says="argument"),
    bounded("inverse", "Sum of reciprocals", "cp.sum(cp.inv_pos(P @ w)) + cp.sum_squares(w)", private="P", bounds="row_norm=1, argument=(0.3, 6)",
            without={"bounds": "row_norm=1"}, says="argument"),
    of("moments", "Exponential family by its moments", "n * cp.log_sum_exp(G @ mu) - cp.sum(T @ mu) + cp.sum_squares(mu)", private="T",
       public="G", bounds="row_norm=1.8", options="radius=10"),
    refused("cox", "Cox regression: each record against those at risk",
            "sum(event[i] * (cp.log_sum_exp(X[np.argsort(time)[i:]] @ w) - X[np.argsort(time)[i]] @ w) for i in range(n - 1))", size=40,
            private="X, time, event", bounds="row_norm=1", says="survival|several records|sum over records|holds no private data",
            remedy={"objective": "cp.sum(cp.multiply(time, cp.exp(X @ w)) - cp.multiply(event, X @ w))", "constraints": "cp.norm(w, 2) <= 2",
                    "bounds": "row_norm=1, offset=1, weight=2"}),
    refused("raking", "A weight for each record", "cp.sum(cp.kl_div(omega, np.ones(n) / n))", "X.T @ omega == 0.01, cp.sum(omega) == 1",
            private="X", variables={"omega": "n"}, size=60, bounds="row_norm=1", says="losses only.*exp|log_sum_exp|number of records",
            remedy={"objective": "cp.sum(cp.exp(X @ w)) / n - 0.01 * cp.sum(w)", "constraints": "cp.norm(w, 2) <= 2"}),
]  # fmt: skip
