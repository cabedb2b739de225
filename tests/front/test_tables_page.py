"""The page from a table to an answer: its outputs are those of a run, and its code is short.

After a change of the noise, ``python tests/front/test_tables_page.py`` writes the outputs anew.
"""

import contextlib
import functools
import io
import re
from pathlib import Path
from unittest import mock

import pytest

import cvxqop

PATH = Path(__file__).parents[2] / "docs" / "tables.md"
PAGE = PATH.read_text(encoding="utf-8")
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e-\d+)?")


def outputs():
    """What the blocks before each block of output print, with seed 0."""
    namespace, printed = {}, ""
    seeded = functools.partial(cvxqop.privatize, seed=0)
    with mock.patch.object(cvxqop, "privatize", seeded):
        for language, body in BLOCK.findall(PAGE):
            if language == "python":
                out = io.StringIO()
                with contextlib.redirect_stdout(out):
                    exec(compile(body, "tables.md", "exec"), namespace)
                printed = out.getvalue()
            elif language == "output":
                yield printed


def test_the_outputs_of_one_run_are_those_of_seed_0():
    stated = [body for language, body in BLOCK.findall(PAGE) if language == "output"]
    assert len(stated) == 2
    for body, printed in zip(stated, outputs(), strict=True):
        assert NUMBER.sub("#", body).split() == NUMBER.sub("#", printed).split()
        found, expected = (list(map(float, NUMBER.findall(text))) for text in (printed, body))
        assert found == pytest.approx(expected, rel=1e-3)


def test_the_code_that_a_reader_writes_is_short():
    blocks = [body for language, body in BLOCK.findall(PAGE) if language == "python"]
    start = next(i for i, body in enumerate(blocks) if "Schema(" in body)
    end = next(i for i, body in enumerate(blocks) if "schema.predict" in body)
    lines = [line for body in blocks[start : end + 1] for line in body.splitlines() if line.strip()]
    assert len(lines) <= 25


if __name__ == "__main__":
    anew = outputs()
    PATH.write_text(
        BLOCK.sub(lambda m: f"```output\n{next(anew)}```" if m[1] == "output" else m[0], PAGE),
        encoding="utf-8",
    )
