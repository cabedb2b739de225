"""The pages on benchmarks hold the numbers of the results files, and no others between markers."""

import importlib.util
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def table():
    path = ROOT / "benchmarks" / "peers" / "table.py"
    spec = importlib.util.spec_from_file_location("peers_table", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_results_page_is_what_the_files_say(table):
    written = (table.RESULTS / "peers.md").read_text(encoding="utf-8")
    assert written == table.results_page()


def test_docs_page_is_what_the_files_say(table):
    page = table.PAGE.read_text(encoding="utf-8")
    assert set(re.findall(r"<!-- (\w+ .*?) -->", page)) == set(table.BLOCKS)
    assert page == table.filled(page)


def test_another_number_would_be_seen(table):
    page = table.PAGE.read_text(encoding="utf-8")
    changed = re.sub(r"(\d\.\d\d)\d ±", r"\g<1>x ±", page, count=1)
    assert changed != page
    assert table.filled(changed) == page
