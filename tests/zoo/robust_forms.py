"""Regression that is not least squares: Huber, absolute values, quantiles, powers."""

from forms import group, smoothed

of = group("Robust regression and quantiles")
rough = smoothed(of)
refused = group("Robust regression and quantiles", hope="refused")

U = "y - X @ w - b"

FORMS = [
    of("huber", "Huber", "cp.sum(cp.huber(X @ w - y, 0.05))"),
    of("huber-scaled", "Huber in units of σ", "cp.sum(cp.huber((X @ w - y) / 0.1))"),
    of(
        "huber-lasso",
        "Huber, intercept, lasso",
        f"cp.sum(cp.huber({U}, 0.1)) / n + 0.001 * cp.norm1(w)",
    ),
    of(
        "huber-monotone",
        "Huber with an ordered variable",
        "cp.sum(cp.huber(y - X @ w, 0.1))",
        "w[0] >= w[3], w[3] >= w[2]",
    ),
    of(
        "pseudo-huber",
        "Pseudo-Huber",
        "cp.sum(cp.norm(cp.vstack([(X @ w - y) / 0.1, np.ones(n)]), 2, axis=0))",
    ),
    of("log-cosh", "Log-cosh", "cp.sum(cp.log_sum_exp(cp.vstack([X @ w - y, y - X @ w]), axis=0))"),
    of(
        "log-cosh-logistic",
        "Log-cosh by logistic",
        "cp.sum(cp.logistic(2 * (X @ w - y)) - (X @ w - y))",
    ),
    of(
        "expectile",
        "Expectile",
        f"cp.sum(0.75 * cp.square(cp.pos({U})) + 0.25 * cp.square(cp.neg({U})))",
    ),
    of(
        "expectile-terms",
        "Expectile, two terms",
        "3 * cp.sum(cp.square(cp.pos(y - X @ w))) + cp.sum(cp.square(cp.pos(X @ w - y)))",
    ),
    of(
        "squared-tube",
        "Support vector regression, squared",
        f"0.5 * cp.sum_squares(w) + cp.sum(cp.square(cp.pos(cp.abs({U}) - 0.05)))",
    ),
    of(
        "smooth-tube",
        "Huber of the distance to a tube",
        "cp.sum(cp.huber(cp.pos(cp.abs(y - X @ w) - 0.05), 0.1))",
    ),
    of(
        "one-sided",
        "Penalty on one side only",
        "cp.sum(cp.square(cp.pos(X @ w - y))) + cp.sum_squares(w)",
    ),
    of(
        "square-and-huber",
        "Two losses of one residual",
        "cp.sum_squares(y - X @ w) + 0.5 * cp.sum(cp.huber(y - X @ w, 0.05))",
    ),
    of(
        "quartic",
        "Fourth power on a ball",
        "cp.sum(cp.power(X @ w - y, 4)) + 0.1 * cp.sum_squares(w)",
        "cp.norm(w, 2) <= 2",
        bounds="row_norm=1, offset=1.5, argument=0.5",
    ),
    of(
        "cubic",
        "Third power on a box",
        "cp.sum(cp.power(cp.abs(X @ w - y), 3)) + 0.1 * cp.sum_squares(w)",
        "cp.abs(w) <= 2",
        bounds="row_norm=1, offset=1.5, argument=0.5",
    ),
    of(
        "linex",
        "LINEX: exponential on one side",
        "cp.sum(cp.exp(y - X @ w) - (y - X @ w) - 1)",
        "cp.norm(w, 2) <= 2",
    ),
    rough(
        "lad",
        "Least absolute deviations",
        "cp.sum(cp.abs(X @ w - y)) / n + 0.001 * cp.norm1(w)",
        argument="X @ w - y",
        weight="1 / n",
    ),
    rough("lad-norm1", "The same as norm1", "cp.norm1(X @ w - y)", argument="X @ w - y"),
    rough(
        "lad-norm-1",
        "The same as norm(·, 1)",
        "cp.norm(y - X @ w, 1) + cp.sum_squares(w)",
        argument="y - X @ w",
    ),
    rough("lad-nonnegative", "Non-negative", "cp.norm1(X @ w - y)", "w >= 0", argument="X @ w - y"),
    rough(
        "quantile", "Quantile", f"cp.sum(0.5 * cp.abs({U}) + 0.25 * ({U}))", argument=U, middle=0.25
    ),
    rough(
        "pinball",
        "Quantile, as a maximum",
        f"cp.sum(cp.maximum(0.75 * ({U}), -0.25 * ({U})))",
        argument=U,
        middle=0.25,
    ),
    rough(
        "pinball-parts",
        "Quantile, by parts",
        f"cp.sum(0.75 * cp.pos({U}) + 0.25 * cp.neg({U}))",
        argument=U,
        middle=0.25,
    ),
    rough(
        "tube",
        "Support vector regression",
        f"cp.sum_squares(w) + cp.sum(cp.pos(cp.abs({U}) - 0.05))",
        argument=U,
    ),
    rough(
        "tube-maximum",
        "The same as a maximum",
        "cp.sum_squares(w) + cp.sum(cp.maximum(0, cp.abs(X @ w - y) - 0.05))",
        argument="X @ w - y",
    ),
    rough(
        "power-1.5", "Power 1.5", "cp.sum(cp.power(cp.abs(X @ w - y), 1.5))", argument="X @ w - y"
    ),
    rough("median", "Median", "cp.norm1(y - b)", private="y", argument="y - b"),
    rough(
        "deadzone",
        "Dead zone with weights on the sides",
        "cp.sum(cp.maximum(0, X @ w - y - 0.02, -2 * (X @ w - y)))",
        argument="X @ w - y",
        middle=-0.5,
    ),
    refused(
        "worst-case",
        "Worst case over a ball of rows",
        "cp.sum(cp.square(cp.abs(X @ w - y) + 0.1 * cp.norm(w, 2)))",
        says="variable outside its argument.*regulariser",
        remedy={"objective": "cp.sum_squares(X @ w - y) + 2 * cp.norm(w, 2)"},
    ),
    refused(
        "chebyshev",
        "Largest residual",
        "cp.norm_inf(X @ w - y)",
        says=r"no sum over records.*sum\((cp\.)?huber\(X @ w - y\)\)",
        remedy={"objective": "cp.sum(cp.huber(X @ w - y))"},
    ),
    refused(
        "trimmed",
        "Largest losses",
        "cp.sum_largest(cp.square(X @ w - y), n // 10)",
        says=r"no sum over records.*k \* a \+ (cp\.)?sum\((cp\.)?pos\(.*smoothing=\"auto\"",
        remedy={
            "objective": "n // 10 * a + cp.sum(cp.pos(X @ w - y - a))",
            "options": 'smoothing="auto"',
            "argument": "X @ w - y - a",
            "middle": 0.5,
        },
    ),
    refused(
        "censored",
        "Censored records as constraints",
        "cp.sum_squares(X[:200] @ w - y[:200])",
        "X[200:] @ w >= y[200:]",
        private="X[:200], y[:200], X[200:], y[200:]",
        says="losses only.*square\\(pos",
        remedy={
            "objective": "cp.sum_squares(X @ w - y) + cp.sum(cp.square(cp.pos(y - X @ w)))",
            "constraints": "",
            "private": "X, y",
        },
    ),
    refused(
        "soft-maximum",
        "Soft maximum over records",
        "cp.log_sum_exp(X @ w - y) + cp.sum_squares(w)",
        says=r"no sum over records.*sum\((cp\.)?exp\(",
        remedy={
            "objective": "cp.sum(cp.exp(X @ w - y)) / n + cp.sum_squares(w)",
            "constraints": "cp.norm(w, 2) <= 2",
        },
    ),
]
