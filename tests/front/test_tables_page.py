"""The page from a table to an answer: its outputs are those of a run, and its code is short."""

import contextlib
import functools
import io
import re
from pathlib import Path

import pytest

import cvxqop

PAGE = (Path(__file__).parents[2] / "docs" / "tables.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e-\d+)?")


def test_the_outputs_of_one_run_are_those_of_seed_0(monkeypatch):
    monkeypatch.setattr(cvxqop, "privatize", functools.partial(cvxqop.privatize, seed=0))
    namespace, printed, seen = {}, "", 0
    for language, body in BLOCK.findall(PAGE):
        if language == "python":
            out = io.StringIO()
            with contextlib.redirect_stdout(out):
                exec(compile(body, "tables.md", "exec"), namespace)
            printed = out.getvalue()
        elif language == "output":
            seen += 1
            assert NUMBER.sub("#", body).split() == NUMBER.sub("#", printed).split()
            found, expected = (list(map(float, NUMBER.findall(text))) for text in (printed, body))
            assert found == pytest.approx(expected, rel=1e-3)
    assert seen == 2


def test_the_code_that_a_reader_writes_is_short():
    blocks = [body for language, body in BLOCK.findall(PAGE) if language == "python"]
    start = next(i for i, body in enumerate(blocks) if "Schema(" in body)
    end = next(i for i, body in enumerate(blocks) if "schema.predict" in body)
    lines = [line for body in blocks[start : end + 1] for line in body.splitlines() if line.strip()]
    assert len(lines) <= 25
