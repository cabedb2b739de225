"""The theorems of docs/theory.md and the code that implements them name each other."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "theory.md").read_text()
FILES = sorted((ROOT / "cvxqop").rglob("*.py"))
CITATION = re.compile(r"\b(?:Theorem|Lemma)s?\s+\d+(?:(?:,| and| to)\s+\d+)*")
HOMES = {
    # theorem: the modules that compute with its constants
    1: ["privacy/mechanism.py", "perturbed_loss.py"],
    2: ["privacy/mechanism.py", "privacy/paper/calibrated.py"],
    3: ["privacy/wishart/ensemble.py", "privacy/wishart/loss.py"],
    4: ["privacy/wishart/ensemble.py", "privacy/curves.py"],
    5: ["privacy/wishart/ensemble.py", "privacy/wishart/calibrated.py"],
    6: [
        "privacy/wishart/spectral.py",
        "privacy/wishart/spectral_mechanism.py",
        "privacy/accounting/smallest_eigenvalue.py",
    ],
    7: ["privacy/gaussian/calibrated.py", "problem/parts.py"],
    8: [
        "privacy/gaussian/truncated.py",
        "privacy/gaussian/truncated_choice.py",
        "privacy/accounting/oscillator.py",
    ],
    9: [
        "privacy/linear/options.py",
        "privacy/linear/profile.py",
        "problem/losses/declared_loss.py",
        "case.py",
    ],
    10: ["privacy/release.py"],
    11: ["solve/certificate.py"],
    12: ["privacy/paper/profile.py", "privacy/paper/calibrated.py", "privacy/wishart/options.py"],
    13: ["privacy/utility.py", "privacy/linear/calibrated.py", "privacy/gaussian/truncated.py"],
    14: ["privacy/shares.py", "privacy/wishart/calibrated.py"],
    15: [
        "privacy/gaussian/joint.py",
        "privacy/gaussian/shifts.py",
        "privacy/shares.py",
        "problem/parts.py",
    ],
}


def stated(kind="Theorem"):
    """The numbers of the theorems that the page states, in its order."""
    return [int(n) for n in re.findall(rf"^\*\*{kind} (\d+)\b", PAGE, re.MULTILINE)]


def cited(text, kind="Theorem"):
    """The numbers that a text cites, ranges written out."""
    found = set()
    for citation in CITATION.findall(text):
        if not citation.startswith(kind):
            continue
        words = re.findall(r"\d+|to", citation)
        for at, word in enumerate(words):
            if word == "to":
                found.update(range(int(words[at - 1]), int(words[at + 1]) + 1))
            else:
                found.add(int(word))
    return found


def test_citations_are_read():
    assert cited("Theorems 3 to 5, and\nTheorem\n9; Theorems 7, 8 and 12.") == {
        3,
        4,
        5,
        7,
        8,
        9,
        12,
    }
    assert cited("Lemma 1", "Lemma") == {1}
    assert not cited("a theorem 4, Lemma 1")


def test_the_page_counts_its_theorems():
    assert stated() == list(range(1, 16)) == list(HOMES)
    assert stated("Lemma") == [1]
    assert cited(PAGE) <= set(stated())


@pytest.mark.parametrize("kind", ["Theorem", "Lemma"])
def test_every_number_that_the_code_cites_exists(kind):
    for path in FILES:
        assert cited(path.read_text(), kind) <= set(stated(kind)), path.name


@pytest.mark.parametrize("number", HOMES)
def test_the_code_of_a_theorem_names_it(number):
    for name in HOMES[number]:
        assert number in cited((ROOT / "cvxqop" / name).read_text()), name


def test_section_numbers_exist():
    sections = set(re.findall(r"^## (\d+)\. ", PAGE, re.MULTILINE))
    for path in FILES:
        assert set(re.findall(r"[Tt]heory §(\d+)", path.read_text())) <= sections, path.name


def test_choices_of_utility_are_named_in_one_place():
    """Each constant of the table on the page is in the code once, with the value it has there."""
    table = PAGE.partition("**Numbers that are only choices.**")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| `([A-Z_]+)` = (\S+) \|", table, re.MULTILINE)
    values = {"½": 0.5}
    found = {
        name: float(number)
        for path in (ROOT / "cvxqop" / "privacy").rglob("*.py")
        for name, number in re.findall(r"^([A-Z_]+) = ([\d.]+)$", path.read_text(), re.MULTILINE)
    }
    assert len(rows) == 4
    for name, number in rows:
        assert found[name] == (values.get(number) or float(number)), name
