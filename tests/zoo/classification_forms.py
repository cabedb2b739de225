"""Two classes: logistic, hinge, probit, rankings."""

from forms import group, smoothed

of = group("Classification", private="X, s", bounds="row_norm=1")
rough = smoothed(of)
refused = group("Classification", hope="refused", private="X, s", bounds="row_norm=1")

M = "cp.multiply(s, X @ w)"

FORMS = [
    of("logistic", "Logistic regression, labels ±1", f"cp.sum(cp.logistic(-{M}))"),
    of("logistic-signs", "Signs on the labels", "cp.sum(cp.logistic(cp.multiply(-s, X @ w)))"),
    of("logistic-rows", "Labels inside the rows", "cp.sum(cp.logistic(-(s[:, None] * X) @ w))", private="s[:, None] * X"),
    of("logistic-diagonal", "Labels as a matrix", "cp.sum(cp.logistic(-np.diag(s) @ X @ w))", size=100),
    of("logistic-zero-one", "Labels 0 and 1", "cp.sum(cp.logistic(X @ w) - cp.multiply(z, X @ w))", private="X, z"),
    of("logistic-inner", "Labels 0 and 1, as an inner product", "cp.sum(cp.logistic(X @ w)) - z @ (X @ w) + cp.norm1(w)", private="X, z"),
    of("logistic-maximise", "Log-likelihood, maximised", "cp.Maximize(cp.sum(cp.multiply(z, X @ w) - cp.logistic(X @ w)) / n - 0.001 * cp.norm(w, 1))", private="X, z"),
    of("logistic-column", "Columns (n, 1)", "cp.sum(cp.logistic(X @ V) - cp.multiply(z[:, None], X @ V))", private="X, z[:, None]"),
    of("logistic-mean", "Mean, intercept", "cp.mean(cp.logistic(-cp.multiply(s, X @ w + b)))"),
    of("logistic-exponentials", "log(1 + exp) by log_sum_exp", "cp.sum(cp.log_sum_exp(cp.vstack([np.zeros(n), -cp.multiply(s, X @ w)]), axis=0))"),
    of("logistic-exponentials-columns", "The same by hstack", "cp.sum(cp.log_sum_exp(cp.hstack([np.zeros((n, 1)), -cp.multiply(s[:, None], X @ V)]), axis=1))", private="X, s[:, None]"),
    of("logistic-loop", "A loop of terms", "sum(cp.logistic(-s[i] * (X[i] @ w)) for i in range(n))", size=60),
    of("logistic-fused", "With a fused penalty", f"cp.sum(cp.logistic(-{M})) + 2 * cp.tv(w)"),
    of("logistic-groups", "With overlapping groups", f"cp.sum(cp.logistic(-{M})) + cp.norm(w[:3]) + cp.norm(w[1:])"),
    of("logistic-ordered", "With an order", f"cp.sum(cp.logistic(-{M}))", "cp.diff(w) >= -1"),
    of("logistic-weights", "Class weights, public numbers of labels", "cp.sum(cp.multiply(c, cp.logistic(-cp.multiply(s, X @ w))))",
       private="X, s, c", bounds="row_norm=1, weight=2", hope="bounded", without={"bounds": "row_norm=1"}, says="weight"),
    of("logistic-squares", "Beside least squares on the same rows", f"cp.sum(cp.logistic(-{M})) + 0.5 * cp.sum_squares(X @ w - y)",
       private="X, s, y", bounds="row_norm=1, offset=1.5"),
    of("probit", "Probit", f"-cp.sum(cp.log_normcdf({M}))"),
    of("squared-hinge", "Squared hinge", f"cp.sum(cp.square(cp.pos(1 - {M}))) + cp.norm1(w)", bounds="row_norm=1, offset=1"),
    of("squared-hinge-norm", "The same as sum_squares", f"cp.sum_squares(cp.pos(1 - {M}))", bounds="row_norm=1, offset=1"),
    of("smooth-hinge", "Huber of the hinge", f"cp.sum(cp.huber(cp.pos(1 - {M}), 0.5)) + cp.sum_squares(w)", bounds="row_norm=1, offset=1"),
    of("exponential-loss", "Boosting: exponential loss on a ball", f"cp.sum(cp.exp(-{M}))", "cp.norm(w, 2) <= 3"),
    of("bradley-terry", "Bradley-Terry: winners minus losers", "cp.sum(cp.logistic(-D @ p5)) + cp.sum_squares(p5)", "cp.sum(p5) == 0",
       private="D", bounds="row_norm=1.5", variables={"p5": 5}),

    rough("hinge", "Support vector machine", f"cp.sum_squares(w) + cp.sum(cp.pos(1 - {M}))", argument=f"1 - {M}", middle=0.5),
    rough("hinge-intercept", "Mean, intercept, ℓ1", "cp.sum(cp.pos(1 - cp.multiply(s, X @ w - b))) / n + 0.001 * cp.norm(w, 1)",
          argument="1 - cp.multiply(s, X @ w - b)", weight="1 / n", middle=0.5),
    rough("hinge-maximum", "As a maximum", f"cp.sum(cp.maximum(0, 1 - {M})) + cp.sum_squares(w)", argument=f"1 - {M}", middle=0.5),
    rough("hinge-slack", "With slack variables", "cp.sum_squares(w) + cp.sum(slack)", "cp.multiply(s, X @ w) >= 1 - slack, slack >= 0", variables={"slack": "n"}),
    rough("perceptron", "Perceptron", f"cp.sum(cp.pos(-{M})) + cp.sum_squares(w - 1)", argument=f"-{M}", middle=0.5),
    rough("ramp-rank", "Ranking by pairs", "cp.sum(cp.pos(1 - D @ p5)) + cp.sum_squares(p5)", private="D", bounds="row_norm=1.5",
          variables={"p5": 5}, argument="1 - D @ p5", middle=0.5),

    refused("positives-apart", "The positives apart", "cp.sum(cp.logistic(X @ w)) - cp.sum(X[s > 0] @ w)", private="X, X[s > 0]",
            says="different numbers of records.*multiply", remedy={"objective": "cp.sum(cp.logistic(X @ w) - cp.multiply(z, X @ w))", "private": "X, z"}),
    refused("svm-dual", "The dual of a support vector machine", "cp.Maximize(cp.sum(alpha) - 0.5 * cp.quad_form(alpha, cp.psd_wrap(K)))", "alpha >= 0, alpha <= 1, s @ alpha == 0",
            private="K, s", variables={"alpha": 60}, size=60, says="losses only",
            remedy={"objective": f"cp.sum_squares(w) + cp.sum(cp.pos(1 - {M}))", "constraints": "", "private": "X, s", "options": 'smoothing="auto"'}),
    refused("hard-margin", "Hard margin", "cp.Maximize(a)", f"{M} >= a, cp.norm(w, 2) <= 1", says="losses only.*(pos|hinge)",
            remedy={"objective": f"cp.sum(cp.pos(1 - {M}))", "constraints": "cp.norm(w, 2) <= 1", "options": 'smoothing="auto"'}),
    refused("accuracy", "Largest violation", f"cp.max(cp.pos(1 - {M})) + cp.sum_squares(w)", says=r"no sum over records",
            remedy={"objective": f"cp.sum(cp.square(cp.pos(1 - {M}))) + cp.sum_squares(w)", "bounds": "row_norm=1, offset=1"}),
]  # fmt: skip
