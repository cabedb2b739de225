"""Numbers in the sentences of the pages, against committed results at the precision printed.

Where a sentence is written anew its entry here follows; what it is compared with is the file.
"""

import re

import derived
import pytest
from committed import ROOT, agrees, constants, facts, risks
from derived import apart, ratios

NUMBER = r"(−?[\d,]*\d(?:\.\d+)?(?:e\+?\d+)?)"


def fact(*names):
    return tuple(facts()[name] for name in names)


def halves():
    at = constants()["m = 2d", "100"]
    return (at["published_equation"] / at["paper"] / 1e12,)


def gradient_at_the_end():
    largest = facts()["LOP-Clip largest gradient of a record at the end"]
    return (largest, 1e4 / largest)


def published_risk(curve):
    return (risks()["published", curve, 1000.0],)


SENTENCES = {
    "README.md": [("the earnings of # people", derived.people)],
    "docs/index.md": [("the earnings of # people", derived.people)],
    "docs/start.md": [("the earnings of # people", derived.people)],
    "docs/audits.md": [
        ("all # rows pass", derived.audited_rows),
        ("It took # s on two cores", derived.audit_seconds),
    ],
    "docs/benchmarks.md": [
        (
            "# fits of each of two neighbouring data sets at ε = 1 put ε at # or more",
            derived.diffprivlib_audit,
        ),
        ('`"wishart"` trails `"linear"` by about # ', derived.linear_over_wishart),
    ],
    "docs/many_machines.md": [
        (
            "On # × 50 records … took # s with them and # s without; one process took # s",
            derived.dask_seconds,
        ),
    ],
    "docs/solving.md": [("it is # to # times Δ/μ, … δ): # at (1, 1e-6)", derived.release_noise)],
    "docs/mechanisms.md": [
        ("releases in #% of # cells, … probabilities, in #% of #", derived.predicted_cells),
        ("Wishart ensemble there by about # in mean", derived.linear_over_wishart),
        ('`Linear(clip="anchor")`, about # ahead of it', derived.clipped_over_linear),
        ("above the Wishart ensemble in # of # cells", derived.above_wishart),
        (
            "the most accurate in # of # cells, in the others within # of",
            derived.six_stages_best,
        ),
        (
            "costs six stages # of test R² in the mean over ε, four times as much #, "
            "and # at worst, at ε = # ",
            derived.radius_costs,
        ),
        ("R² differs by at most # below", derived.floor_from_gaussian),
        ("its σ² is # (d = 1) to # (d = 2000)", derived.paper_over_exact),
    ],
    "docs/paper.md": [
        ("a factor of #·10¹²", halves),
        (
            "#% off there, a factor of # at d = 120, and gives no number from d = #",
            derived.double_precision,
        ),
        (
            "# times apart at d = 100, # at d = 1000 for squared losses, # and # for other",
            lambda: (*apart("exact", 100, 1000), *apart("exact_other", 100, 1000)),
        ),
        (
            "proved, but # times (d = 100) to # times (d = 1000)",
            lambda: apart("exact_other", 100, 1000),
        ),
        ("agree to five digits at all # points", derived.agreeing_points),
        (
            "the curves lie # to # times above",
            lambda: ratios(("exact", "inexact"), "published_equation", "paper"),
        ),
        ("but at # of our # points it ends #% and #% above", derived.stray_points),
        (
            "is # to # times below the restored bound on the left",
            lambda: ratios(("exact",), "paper", "cvxqop"),
        ),
        ("a guard for η, # to # times below", lambda: ratios(("inexact",), "paper", "cvxqop")),
        (
            "in place of τ: # to # times below",
            lambda: ratios(("inexact",), "paper", "cvxqop_other"),
        ),
        (
            "LOP # on average and # at most, LOP-Clip # and #, QOP # and #)",
            derived.deviations,
        ),
        (
            "# from the truth, which is # long; the risk of the anchor itself is # ",
            lambda: fact("distance of anchor and truth", "norm of the truth", "risk of the anchor"),
        ),
        (
            "halves of α1 | # | # with them",
            lambda: fact("sigma2 of the published code", "sigma2 of the paper"),
        ),
        ("σ̃ = # a coordinate, … a vector # times as long", derived.noise_of_the_paper),
        (
            "the largest gradient at the end is # … is # times the largest gradient",
            gradient_at_the_end,
        ),
        (
            "LOP-Clip ends #% from its solution, risk # where the solution has # ",
            derived.clipped_end,
        ),
        (
            "exact solution has risk #, the anchor's own",
            lambda: published_risk("QOP, solved"),
        ),
        ("an exact solve: #.", lambda: published_risk("QOP, cvxqop, same anchor")),
        (
            "θ = 0 has risk # at n = 300 and # at n",
            lambda: fact("risk of theta = 0", "risk of theta = 0, large"),
        ),
        (
            "At n = #, d = 100 and ε = ½ no private mechanism here is better",
            derived.nobody_beats_zero,
        ),
        (
            "it has # times the risk of QOP and # times that of QOP with the floor",
            derived.clip_over_qop,
        ),
    ],
}
"""By page: the words of a sentence, # for a number and … for anything; what gives the numbers."""


def numbers_in(page, words):
    pattern = re.escape(words).replace(re.escape("#"), NUMBER).replace("…", ".*?")
    text = " ".join((ROOT / page).read_text(encoding="utf-8").split())
    found = [match.groups() for match in re.finditer(pattern, text)]
    assert len(found) == 1, f"{page} does not say once: {words}"
    return found[0]


@pytest.mark.parametrize(
    ("page", "words", "values"),
    [(page, *sentence) for page, some in SENTENCES.items() for sentence in some],
)
def test_sentences(page, words, values):
    printed, expected = numbers_in(page, words), values()
    assert len(printed) == len(expected)
    assert all(map(agrees, printed, expected)), (printed, expected)
