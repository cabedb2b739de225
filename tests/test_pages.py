"""The pages that people read: links lead somewhere, measured tables are what the results say."""

import re
from pathlib import Path

import pytest

import cvxqop
from cvxqop import audit, sklearn, tables

ROOT = Path(__file__).parents[1]
DOCS = sorted((ROOT / "docs").glob("*.md"))
PAGES = [*DOCS, *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "benchmarks/README.md"))]
CODE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)\s]+)\)")
DECIMAL = re.compile(r"(?<![\w.])[-−]?\d+\.\d+(?:e[-+]?\d+)?(?![\w.]*\w)")
SOURCE = re.compile(r"(?:benchmarks/results|docs/paper)/[\w./-]*\w")


def text_of(page):
    return CODE.sub("", page.read_text())


def anchors(page):
    """The anchors that the site gives to the headings of a page."""
    headings = re.findall(r"^#+ (.*)$", text_of(page), re.MULTILINE)
    words = (re.sub(r"[^\w\s-]", "", heading.lower()).strip() for heading in headings)
    return {re.sub(r"[-\s]+", "-", word) for word in words}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    for target in LINK.findall(text_of(page)):
        if target.startswith("https://"):
            continue
        name, _, anchor = target.partition("#")
        other = (page.parent / name).resolve() if name else page
        assert other.exists(), target
        assert not anchor or anchor in anchors(other), target


def test_every_page_is_in_the_navigation():
    listed = re.findall(r": (\w+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE)
    assert sorted(listed) == [page.name for page in DOCS]


def test_every_public_name_is_documented():
    documented = re.findall(
        r"^::: cvxqop\.(?:\w+\.)?(\w+)$", (ROOT / "docs" / "api.md").read_text(), re.M
    )
    public = {*cvxqop.__all__, *audit.__all__, *tables.__all__, *sklearn.__all__}
    assert sorted(documented) == sorted(public)


def test_the_newcomers_script_is_the_example():
    block = re.search(
        r"^```python\n(.*?)^```$", (ROOT / "docs" / "start.md").read_text(), re.M | re.S
    )
    assert block.group(1) == (ROOT / "examples" / "your_csv.py").read_text()
    assert len(re.findall(r"# edit \d", block.group(1))) == 3


def strangers(section):
    """Decimals in the tables of a section that no result file named in it holds.

    A table is measured when a row has two decimals or more. Its numbers must be roundings of
    numbers in the lines of the file that hold the first word of the row, where there are such.
    """
    files = [(ROOT / name).read_text().splitlines() for name in SOURCE.findall(section)]
    missing = []
    for row in re.findall(r"^\|(.*)\|$", section, re.MULTILINE):
        found = DECIMAL.findall(row)
        if len(found) < 2:
            continue
        key = row.split("|")[0].split()[0].strip("`*,")
        lines = [line for file in files for line in file if key in line]
        lines = lines or [line for file in files for line in file]
        known = [
            float(number)
            for line in lines
            for number in re.findall(r"-?\d+\.?\d*(?:e[-+]?\d+)?", line)
        ]
        for number in found:
            value = float(number.replace("−", "-"))
            places = len(number.split("e")[0].split(".")[1])
            half = 0.5 * 10.0**-places * (1 + 1e-9)
            if not any(abs(value - other) <= half for other in known):
                missing.append(f"{key}: {number}")
    return missing


# No number on the page of forms is measured: its tables are code, and tests/zoo compares them.
MEASURED = [page for page in DOCS if page.name != "gallery.md"]


@pytest.mark.parametrize("page", MEASURED, ids=lambda page: page.name)
def test_measured_tables_come_from_committed_results(page):
    for section in re.split(r"^#+ ", text_of(page), flags=re.MULTILINE):
        assert not strangers(section)


def test_an_invented_number_is_found():
    source = "`benchmarks/results/peers_regression.csv`\n\n"
    assert not strangers(source + "| diabetes | 0.01 / 0.17 |\n")
    assert strangers(source + "| diabetes | 0.01 / 0.98 |\n") == ["diabetes: 0.98"]
    assert strangers("| diabetes | 0.01 / 0.17 |\n")


def test_three_edits_lead_to_a_private_result(tmp_path, capsys):
    table = "shoe size,age in years,hours\n" + "38,40,7.5\n41,,8\n" * 300  # with missing values
    (tmp_path / "mine.csv").write_text(table)
    edits = {
        r"^FILE = .*$": f"FILE = {str(tmp_path / 'mine.csv')!r}",
        r"^TARGET = .*$": 'TARGET = ("hours", 0, 24)',
        r"^FEATURES = .*$": 'FEATURES = {"shoe size": (30, 50), "age in years": (0, 120)}',
    }
    script = (ROOT / "examples" / "your_csv.py").read_text()
    for line, edited in edits.items():
        script, times = re.subn(line, lambda _, new=edited: new, script, flags=re.MULTILINE)
        assert times == 1
    exec(compile(script, "your_csv.py", "exec"), {})
    printed = capsys.readouterr().out
    assert "moves hours by" in printed
    assert "(1, 1e-06)-differential privacy" in printed
    assert "NOT PRIVATE" not in printed
