"""Every Python snippet of the README and the docs runs; printed answers are as printed."""

import contextlib
import io
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("**/*.md"))]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_snippets(page, monkeypatch):
    monkeypatch.chdir(ROOT)  # where a reader runs them
    namespace, printed = {}, ""
    for language, body in BLOCK.findall(page.read_text()):
        if language == "python":
            out = io.StringIO()
            with contextlib.redirect_stdout(out):
                exec(compile(body, str(page), "exec"), namespace)
            printed = out.getvalue()
        elif language == "text":
            expected = body.removesuffix("...\n")
            if expected != body:
                assert printed.startswith(expected)
            else:
                assert printed == expected


def test_ci_calls_the_readme_test_command():
    shell = [body.strip() for language, body in BLOCK.findall(PAGES[0].read_text())
             if language == "sh"]  # fmt: skip
    assert len(shell) == 2
    assert shell[0].endswith("examples/private_lasso.py")
    assert shell[1] in (ROOT / ".ci" / "run").read_text().splitlines()
