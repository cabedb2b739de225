"""Numbers that sentences of the pages state, computed from committed results or by the library."""

import math
import re

from committed import (
    EPSILONS,
    PAPER,
    RESULTS,
    ROOT,
    column,
    constants,
    datasets,
    facts,
    regression,
    risks,
    rows,
    six,
    table,
    text_of,
)

from cvxqop.privacy.accounting.profile import gaussian_mu
from cvxqop.privacy.linear.options import Linear
from cvxqop.privacy.mechanism import Sensitivity
from cvxqop.privacy.wishart.options import Wishart


def ratios(panel, above, below):
    """Smallest and largest ratio of two columns of figure 1 over its points."""
    found = [
        float(r[above]) / float(r[below])
        for r in rows(PAPER / "figure1.csv")
        if r["panel"] in panel and r[above] and r[below]
    ]
    return min(found), max(found)


def optimiser():
    """Published number over the optimum, interpolated in log δ, in the right panel of figure 1."""
    found = []
    for epsilon in {r["epsilon"] for r in rows(PAPER / "figure1.csv")}:
        line = [r for r in rows(PAPER / "figure1.csv")
                if r["panel"] == "inexact" and r["epsilon"] == epsilon]  # fmt: skip
        line.sort(key=lambda r: float(r["delta"]))
        known = [i for i, r in enumerate(line) if r["published_equation"]]
        for i, r in enumerate(line):
            near = [line[max(k for k in known if k <= i)], line[min(k for k in known if k >= i)]]
            # Every second point is the middle, in log δ, of two that are known.
            optimum = math.sqrt(math.prod(float(one["published_equation"]) for one in near))
            found.append(float(r["published_code"]) / optimum)
    return sorted(found)


def stray_points():
    found = optimiser()
    assert max(found[:-2]) < 1.02
    return (2, len(found), 100 * (found[-2] - 1), 100 * (found[-1] - 1))


def agreeing_points():
    exact = [r for r in rows(PAPER / "figure1.csv") if r["panel"] == "exact"]
    both = [r for r in exact if r["published_code"] and r["published_equation"]]
    low, high = ratios(("exact",), "published_code", "published_equation")
    assert 1 - 1e-5 < low <= high < 1 + 1e-5
    return (len(both),)


def double_precision():
    at = {d: constants()["m = 2d", d] for d in ("100", "120")}
    none = [int(d) for panel, d in constants()
            if panel == "m = 2d" and constants()[panel, d]["published_code"] is None]  # fmt: skip
    return (
        100 * (1 - at["100"]["published_code"] / at["100"]["published_equation"]),
        at["120"]["published_equation"] / at["120"]["published_code"],
        min(none),
    )


def apart(curve, *dimensions):
    best = [constants()["best m", str(d)] for d in dimensions]
    return tuple(one["paper"] / one[curve] for one in best)


def deviations():
    kinds = [f"{name} {kind} std" for name in ("LOP", "LOP-Clip", "QOP")
             for kind in ("average", "largest")]  # fmt: skip
    return tuple(facts()[kind] for kind in kinds)


def furthest(curve):
    """Largest distance to the exact solution, in percent, rounded up."""
    found = [v for k, v in facts().items() if k.startswith(f"{curve} distance to the solution")]
    return 100 * max(found)


def clipped_end():
    published = {curve: risks()["published", curve, 1000.0] for curve in
                 ("LOP-Clip", "LOP-Clip, solved")}  # fmt: skip
    assert furthest("LOP") < 9
    assert furthest("QOP") < 3
    distance = 100 * facts()["LOP-Clip distance to the solution kappa=1000"]
    return (distance, *published.values())


def noise_of_the_paper():
    sigma = facts()["sigma of the release that the paper asks for"]
    length = 10 * sigma / facts()["norm of the truth"]
    return (sigma, round(length, -1))


def clip_over_qop():
    large = {c: risks()["honest, large", c, 1000.0]
             for c in ("LOP-Clip, classic", "QOP", "QOP, floor")}  # fmt: skip
    return tuple(large["LOP-Clip, classic"] / large[c] for c in ("QOP", "QOP, floor"))


def nobody_beats_zero():
    """At n = 300 from κ = 1 on."""
    zero = facts()["risk of theta = 0"]
    public = ("not private", "theta = 0")
    private = [v for (panel, curve, kappa), v in risks().items()
               if panel == "honest" and kappa >= 1 and curve not in public]  # fmt: skip
    assert min(private) > zero
    return (300,)


def above_wishart():
    values = regression()
    pairs = [(name, epsilon) for name in datasets() for epsilon in EPSILONS]
    return (sum(values[n, "gaussian", e] > values[n, "wishart", e] for n, e in pairs), len(pairs))


def six_stages_best():
    """Cells where six stages are best of all private mechanisms of the file; the largest gap."""
    gaps = []
    for name in datasets():
        for epsilon in EPSILONS:
            private = [v for (n, m, e), v in regression().items()
                       if (n, e) == (name, epsilon) and m != "wishart, floor"]  # fmt: skip
            gaps.append(max(private) - regression()[name, "gaussian, 6 stages", epsilon])
    return (sum(gap <= 0 for gap in gaps), len(gaps), max(gaps))


def floor_from_gaussian():
    names = {r["dataset"] for r in rows(RESULTS / "wishart_floor.csv")}
    gaps = [abs(a - b) for name in names for a, b in
            zip(six(name, "wishart, floor"), six(name, "gaussian"), strict=True)]  # fmt: skip
    return (max(gaps),)


def radius_costs():
    """R² that six stages lose with a quarter of the radius, with four times as much, at most."""
    keys = ("radius", "stages", "dataset", "epsilon")
    found = column(RESULTS / "wrong_radius.csv", "r2_median", *keys)
    lost = {
        radius: {key[2:]: found["1", *key[1:]] - value for key, value in found.items()
                 if key[:2] == (radius, "6")}
        for radius in ("0.25", "4")
    }  # fmt: skip
    worst = max((v, key) for some in lost.values() for key, v in some.items())
    assert worst[1][1] == "0.1"
    means = (sum(some.values()) / len(some) for some in lost.values())
    return (*means, worst[0], float(worst[1][1]))


def accuracy_gained(method, other):
    """Mean over data sets at ε = 1, with an intercept."""
    keys = ("dataset", "method", "epsilon")
    scores = column(RESULTS / "peers" / "classification.csv", "score_median", *keys)
    names = dict.fromkeys(name for name, _, _ in scores)
    gaps = [scores[n, f"cvxqop, {method}, intercept", "1"]
            - scores[n, f"cvxqop, {other}, intercept", "1"] for n in names]  # fmt: skip
    return (sum(gaps) / len(gaps),)


def linear_over_wishart():
    return accuracy_gained("Linear", "Wishart")


def clipped_over_linear():
    return accuracy_gained("Linear, clipped", "Linear")


def diffprivlib_audit():
    head = ("check", "found")
    found = dict(table("benchmarks/results/peers/audit_diffprivlib.md", *head)[1])
    bound = float(found["ε is at least, with 95% confidence"])
    fits = found["`LogisticRegression` with intercept, ε = 1: fits of each data set"]
    return (int(fits.replace(",", "")), math.floor(100 * bound) / 100)


def audited_rows():
    results = text_of("benchmarks/results/audit.md")
    verdicts = [row[-1] for row in table("benchmarks/results/audit.md", "mechanism")[1]]
    assert set(verdicts) == {"pass"}
    assert f"All {len(verdicts)} rows pass." in results
    return (len(verdicts),)


def audit_seconds():
    (seconds,) = re.findall(r"^Time: (\d+) s; worker", text_of("benchmarks/results/audit.md"), re.M)
    return (int(seconds),)


def predicted_cells():
    text = text_of("benchmarks/results/predicted_error.md")
    found = re.findall(r"two in (\d+)% of (\d+) cells", text)
    return tuple(float(number) for pair in found for number in pair)


def dask_seconds():
    text = text_of("benchmarks/results/dask.md")
    size = re.search(r"on ([\d,]+) ×", text)[1]
    names = ("Dask arrays, LocalCluster of two workers", "the same, settings.*?", "one process.*?")
    taken = (re.search(rf"^\| {name} \| ([\d.]+)", text, re.M)[1] for name in names)
    return (float(size.replace(",", "")), *map(float, taken))


def people():
    return (len(rows(ROOT / "examples" / "data" / "cps_earnings.csv")),)


def paper_over_exact():
    found = []
    for d in (1, 2000):
        bounds = Sensitivity(d, 1.0, 0.0, True, "add_remove", anchor_error=0.0)
        paper = Wishart(calibration="paper").calibrate(1.0, 1e-6, bounds)
        exact = Wishart(degrees_of_freedom=paper.degrees_of_freedom)
        found.append(paper.sigma2 / exact.calibrate(1.0, 1e-6, bounds).sigma2)
    return (found[0], round(found[1], -1))


def release_noise():
    """σ_rel over accuracy/μ, the smallest and largest of some calibrations; μ at (1, 1e-6)."""
    found = []
    for epsilon, adjacency in ((0.1, "add_remove"), (8.0, "replace_one")):
        bounds = Sensitivity(3, 1.0, 1.0, False, adjacency, gradient=1.0)
        for mechanism in (Linear(calibration="classic"), Wishart(degrees_of_freedom=30)):
            release = mechanism.calibrate(epsilon, 1e-6, bounds, accuracy=1e-6).release
            found.append(release.scale / 1e-6 * gaussian_mu(epsilon, 1e-6))
    return (min(found), max(found), gaussian_mu(1.0, 1e-6))
