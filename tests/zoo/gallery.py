"""The page of forms, from the forms that the tests run: ``python tests/zoo/gallery.py``."""

from __future__ import annotations

import re
from collections import Counter
from itertools import groupby
from pathlib import Path

from all_forms import FORMS
from forms import Form, build
from test_zoo import NOT_YET

import cvxqop

PAGE = Path(__file__).parents[2] / "docs" / "gallery.md"
OUTCOMES = {
    "released": "released",
    "bounded": "released once bounded",
    "smoothed": "released, smoothed",
    "refused": "refused; write",
}
HEAD = """\
# Forms

Problems as people write them in CVXPY, what they are read as, and what to state. The tests run the
code of each: it is read, released at ε = 10⁶ and compared with CVXPY's own answer (`tests/zoo`);
this page is written by `tests/zoo/gallery.py`. {counts}

`X` has a record a row; `y` are targets, `s` labels −1 and 1, `z` labels 0 and 1, `k` counts, `Y`
and `Z` several targets and classes as rows of 0 and 1, `r` returns, `v` public weights, `c` private
ones. `w`, `b` and `W` are variables, and so are `t`, `a`, `mu`. "State" stands beside
`private=[…]`, ε and δ. "φ" is a function of one number a record that has no name of its own, with a
proven bound κ on its curvature.
"""


def page() -> str:
    """The whole text."""
    counts = Counter("not yet" if form.id in NOT_YET else form.hope for form in FORMS)
    said = (
        f"Of {len(FORMS)}, {counts['released']} are released as they stand, {counts['bounded']} "
        f'once something is bounded, {counts["smoothed"]} with `smoothing="auto"`; '
        f"{counts['refused']} are refused with another that runs; {counts['not yet']} are not yet "
        "as hoped."
    )
    parts = [HEAD.format(counts=said)]
    for name, forms in groupby(FORMS, key=lambda form: form.group):
        parts.append(f"\n## {name}\n\n| problem | as written | read as | state | outcome |\n")
        parts.append("| --- | --- | --- | --- | --- |\n")
        parts += [row(form) for form in forms]
    return "".join(parts)


def row(form: Form) -> str:
    """A line of a table."""
    cells = [form.name, _code(form), "", "", OUTCOMES[form.hope]]
    if form.id in NOT_YET:
        cells[4] = f"not yet: {NOT_YET[form.id]}"
    else:
        known = form.rewritten() if form.hope == "refused" else form
        cells[2] = _reading(known)
        cells[3] = ", ".join(f"`{one}`" for one in known.stated)
        if form.hope == "refused":
            cells[4] += " " + _code(known)
    assert not any("|" in cell for cell in cells), form.id
    return f"| {' | '.join(cells)} |\n"


def _code(form: Form) -> str:
    constraints = f" s.t. `{form.constraints}`" if form.constraints else ""
    return f"`{form.objective}`{constraints}"


def _reading(form: Form) -> str:
    """φ and κ from what `explain` says."""
    built = build(form)
    lists = {name: built.options[name] for name in ("private", "public")}
    found = []
    for line in re.findall(r"φ = (.*)", cvxqop.explain(built.problem, **lists)):
        name = line.split("; ")[0]
        name = "φ" if name == "a loss of one number" else name.split(",")[0]
        kappa = re.search(r"κ = ([^\s;]+)", line)
        rough = "with kinks" if "not smooth" in line else "κ on bounded ranges"
        found.append(f"{name}, κ = {kappa[1]}" if kappa else f"{name}, {rough}")
    return " + ".join(dict.fromkeys(found)) or "linear"


if __name__ == "__main__":
    PAGE.write_text(page())
