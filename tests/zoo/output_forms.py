"""Several outputs: multi-task least squares, classes, levels, masked and low-rank matrices."""

from forms import group, smoothed

of = group("Several outputs", private="X, Y", bounds="row_norm=1, offset=2.5")
classes = group("Several classes", private="X, Z", bounds="row_norm=1")
refused = group("Several outputs", hope="refused", private="X, Y", bounds="row_norm=1, offset=2.5")

SOFTMAX = "cp.sum(cp.log_sum_exp(X @ W, axis=1)) - cp.sum(cp.multiply(Z, X @ W))"

FORMS = [
    of("multi-output", "Multi-output ridge", "cp.sum_squares(X @ W - Y) + 0.5 * cp.sum_squares(W)"),
    of("frobenius", "As a Frobenius norm", 'cp.norm(X @ W - Y, "fro") ** 2 + cp.sum(cp.abs(W))'),
    of("reduced-rank", "Nuclear norm", "0.5 * cp.sum_squares(X @ W - Y) + 2 * cp.normNuc(W)"),
    of(
        "multi-task",
        "Tasks as columns, row groups",
        "sum(cp.sum_squares(X @ W[:, j] - Y[:, j]) for j in range(3)) + 2 * cp.mixed_norm(W, 2, 1)",
    ),
    of(
        "multi-task-columns",
        "The same, columns listed",
        "sum(cp.sum_squares(X @ W[:, j] - Y[:, j]) for j in range(3))",
        private="X, *Y.T",
    ),
    of(
        "multi-intercept",
        "An intercept an output",
        "cp.sum_squares(X @ W + ones @ mu1 - Y)",
    ),
    of("multi-huber", "Huber in every output", "cp.sum(cp.huber(X @ W - Y, 0.1))"),
    of(
        "multi-logistic",
        "A logistic loss a column",
        "cp.sum(cp.logistic(X @ W) - cp.multiply(Z, X @ W))",
        private="X, Z",
        bounds="row_norm=1",
    ),
    of(
        "multi-lengths",
        "Lengths of residuals, Huber",
        "cp.sum(cp.huber(cp.norm(X @ W - Y, 2, axis=1), 0.2))",
    ),
    of(
        "masked",
        "Outputs that are seen",
        "cp.sum_squares(cp.multiply(seen, X @ W - Y)) + 0.1 * cp.sum_squares(W)",
        private="X, Y, seen",
    ),
    of(
        "masked-public",
        "A public mask",
        "cp.sum_squares(cp.multiply(seen, X @ W - Y)) + 0.1 * cp.sum_squares(W)",
        public="seen",
    ),
    of(
        "weighted-outputs",
        "A weight an output",
        "cp.sum_squares((X @ W - Y) @ np.diag([1.0, 2.0, 0.5]))",
    ),
    of(
        "shared-tasks",
        "A shared part and one a task",
        "cp.sum_squares(X @ (W + V @ np.ones((1, 3))) - Y) + cp.sum_squares(W)",
    ),
    of(
        "autoregression",
        "Next from last",
        "cp.sum_squares(Q[:, :2] @ V2 - Q[:, 1:])",
        private="Q[:, :2], Q[:, 1:]",
        variables={"V2": (2, 2)},
    ),
    classes("softmax", "Multinomial logistic", f"{SOFTMAX} + cp.sum_squares(W)"),
    classes(
        "softmax-maximise",
        "Log-likelihood, maximised",
        "cp.Maximize(cp.sum(cp.multiply(Z, X @ W)) - cp.sum(cp.log_sum_exp(X @ W, axis=1)))",
    ),
    classes(
        "softmax-one-sum",
        "In one sum",
        "cp.sum(cp.log_sum_exp(X @ W, axis=1) - cp.sum(cp.multiply(Z, X @ W), axis=1))",
    ),
    classes(
        "softmax-trace",
        "Labels as a trace",
        "cp.sum(cp.log_sum_exp(X @ W, axis=1)) - cp.trace(Z.T @ (X @ W)) + cp.sum_squares(W)",
    ),
    classes("softmax-balanced", "Columns that sum to 0", SOFTMAX, "cp.sum(W, axis=1) == 0"),
    classes(
        "softmax-index",
        "Labels by index",
        "cp.sum(cp.log_sum_exp(X @ W, axis=1)) - cp.sum((X @ W)[np.arange(n), j]) + cp.norm1(W)",
        private="X, j",
    ),
    classes(
        "one-against-rest",
        "One against the rest",
        "sum(cp.sum(cp.logistic(X @ W[:, k])) - Z[:, k] @ (X @ W[:, k]) for k in range(3))",
        private="X, *Z.T",
    ),
    classes(
        "ordinal",
        "Ordinal: a threshold a level",
        "sum(cp.sum(cp.logistic(-cp.multiply(levels[:, j], t[j] - X @ w))) for j in range(2))",
        "t[1] >= t[0]",
        private="X, *levels.T",
        bounds="row_norm=1.5",
    ),
    smoothed(classes)(
        "crammer-singer",
        "Support vector machine of several classes",
        "cp.sum(cp.max(X @ W + 1 - Z, axis=1)) - cp.sum(cp.multiply(Z, X @ W)) + cp.sum_squares(W)",
    ),
    refused(
        "completion",
        "Matrix completion, a row a user",
        "cp.sum_squares(cp.multiply(seen, A3 - Y)) + cp.normNuc(A3)",
        variables={"A3": (60, 3)},
        size=60,
        private="Y, seen",
        says="grow|number of records|one entry a record",
        remedy={
            "objective": "cp.sum_squares(Y - ones @ mu1)",
            "private": "Y",
        },
    ),
    of(
        "ratings",
        "Matrix completion, a record a rating",
        "cp.sum_squares(W[i, j] - y) + cp.normNuc(W)",
        private="i, j, y",
        bounds="row_norm=1, offset=1.5",
    ),
]
