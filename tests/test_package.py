"""What a package says of itself: its version once, its names, its self-check, its citation."""

import importlib.metadata
import subprocess
import sys
import tomllib

from committed import ROOT

import cvxqop


def test_version_stands_in_one_place():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert "version" in project["dynamic"]
    assert importlib.metadata.version("cvxqop") == cvxqop.__version__
    cited = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\nversion: {cvxqop.__version__}\n" in cited


def test_no_name_of_another_package_leaks():
    public = {name for name in dir(cvxqop) if not name.startswith("_")}
    modules = {path.stem for path in (ROOT / "cvxqop").glob("[a-z]*")}
    assert public - set(cvxqop.__all__) <= modules


def test_self_check():
    command = [sys.executable, "-W", "error", "-m", "cvxqop"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    lines = done.stdout.splitlines()
    assert lines[0] == f"cvxqop {cvxqop.__version__}"
    assert sum(line.startswith("ok ") for line in lines) == 3
    assert not any("FAILED" in line for line in lines)
