"""Random problems through the whole pipeline, counted by outcome.

    OMP_NUM_THREADS=1 python benchmarks/fuzz.py            # 500 problems, writes results/fuzz.md
    OMP_NUM_THREADS=1 python benchmarks/fuzz.py 100 1000   # 100 from seed 1000, prints only

A wrong outcome (a crash, a warning, printed text, an infeasible release, a wrong charge, ...) is
printed with its seed, and the exit status is 1.
"""

from __future__ import annotations

import multiprocessing
import re
import sys
from collections import Counter
from pathlib import Path

from machine import describe_machine

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "tests" / "front"))

from random_problems import Outcome, trial  # noqa: E402

ORDER = ("released", "refused", "failed after the draw", "wrong")
AFTER = ("AccuracyError", "PrecisionError", "PrivateSolverError")


def result(outcome: Outcome) -> str:
    """Column of an outcome."""
    if outcome.kind in ("released", "wrong"):
        return outcome.kind
    return ORDER[2] if outcome.kind in AFTER else ORDER[1]


def attempt(seed: int) -> tuple[Outcome, str]:
    """The outcome of a trial, and what was wrong with it."""
    try:
        return trial(seed), ""
    except Exception as error:
        text = f"seed {seed}: {type(error).__name__}: {str(error)[:300]}"
        return Outcome("wrong", "wrong", "wrong", "wrong"), text


def run(seeds: range) -> list[Outcome]:
    """Outcomes of the trials; a wrong one is printed and goes on."""
    outcomes = []
    with multiprocessing.Pool() as pool:
        for outcome, wrong in pool.imap(attempt, seeds):
            outcomes.append(outcome)
            if wrong:
                print(wrong, flush=True)
    return outcomes


def table(outcomes: list[Outcome], name: str) -> list[str]:
    """Counts by one attribute."""
    counts = Counter((getattr(one, name), result(one)) for one in outcomes)
    lines = [f"| {name} | {' | '.join(ORDER)} |", "| --- |" + " ---: |" * len(ORDER)]
    lines += [
        f"| {value} | {' | '.join(str(counts[value, kind]) for kind in ORDER)} |"
        for value in sorted({getattr(one, name) for one in outcomes})
    ]
    return [*lines, ""]


def reasons(outcomes: list[Outcome]) -> list[str]:
    """The errors, by what they say before the first number or term."""
    found = Counter()
    for one in outcomes:
        if one.kind not in ("released", "wrong"):
            words = re.split(r"[\d(\"']|private loss|private term", one.reason)[0].strip()
            found[f"{one.kind}: {words[:70]}"] += 1
    lines = ["| error | times |", "| --- | ---: |"]
    return [*lines, *(f"| {text} … | {count} |" for text, count in found.most_common())]


def main() -> int:
    """Run, print, and write the results file where no size was given."""
    given = [int(argument) for argument in sys.argv[1:3]]
    size, first = (given + [500, 0][len(given) :])[:2]
    outcomes = run(range(first, first + size))
    totals = Counter(map(result, outcomes))
    summary = ", ".join(f"{totals[kind]} {kind}" for kind in ORDER)
    lines = [
        "# Random problems through the whole pipeline",
        "",
        f"{describe_machine()}. Made by `benchmarks/fuzz.py`, which says how; seeds {first} to "
        f"{first + size - 1}.",
        "",
        f"{size} problems: {summary}. Refused: before the draw, nothing charged, nothing written. "
        "Failed after the draw: a solver of CVXPY or a limit of precision; the charge stands and "
        "nothing was written. Every release was finite, feasible, within its profile, charged "
        "once, silent and without warnings.",
        "",
    ]
    for name in ("mechanism", "loss", "solver"):
        lines += table(outcomes, name)
    text = "\n".join([*lines, *reasons(outcomes), ""])
    if len(sys.argv) == 1:
        (HERE / "results" / "fuzz.md").write_text(text)
    print(text)
    return int(totals["wrong"] > 0)


if __name__ == "__main__":
    sys.exit(main())
