"""The house: three wings that do not import each other, and nothing heavy at import."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "cvxqop"
FORBIDDEN = {
    "privacy": ("cvxpy", "cvxqop.problem", "cvxqop.solve", "cvxqop._cvxpy", "cvxqop.privatize"),
    "problem": ("cvxqop.privacy", "cvxqop.solve", "cvxqop.privatize"),
    "solve": ("cvxqop.privacy", "cvxqop.problem", "cvxqop.privatize"),
    "inference": ("cvxqop.problem", "cvxqop.records", "cvxqop.spending", "cvxqop.case"),
}


def imports(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path.name}: imports are absolute"
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


@pytest.mark.parametrize("wing", FORBIDDEN)
def test_wings_do_not_import_each_other(wing):
    files = list((PACKAGE / wing).rglob("*.py"))
    assert files
    for path in files:
        for name in imports(path):
            assert not any(name == bad or name.startswith(bad + ".") for bad in FORBIDDEN[wing]), (
                f"{path.name} imports {name}"
            )


def test_no_import_circle():
    """Imports for type checkers count: what a module needs to be understood is read before it."""
    files = {
        ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts).removesuffix(
            ".__init__"
        ): path
        for path in PACKAGE.rglob("*.py")
    }
    left = {
        name: {found for found in imports(path) if found in files} for name, path in files.items()
    }
    for name, found in left.items():
        found -= {name, "cvxqop"}
        # ``from package import module`` names the package, too, which knows nothing of its modules.
        found -= {one for one in found if any(other.startswith(one + ".") for other in found)}
    while ready := [name for name, found in left.items() if not found & left.keys()]:
        for name in ready:
            del left[name]
    assert not left, sorted(left)


@pytest.mark.parametrize("folder", sorted({path.parent for path in PACKAGE.rglob("*.py")}))
def test_a_room_holds_what_a_person_can_take_in(folder):
    assert len([path for path in folder.glob("*.py") if path.name != "__init__.py"]) <= 20


def test_a_file_is_read_in_one_sitting():
    lengths = {
        path.relative_to(PACKAGE).as_posix(): len(path.read_text().splitlines())
        for path in PACKAGE.rglob("*.py")
    }
    assert not {name: length for name, length in lengths.items() if length >= 300}


def test_randomness_comes_from_one_room():
    """Only privacy/noise.py makes generators or reads the operating system's.

    The solve wing is left out: it draws no noise, and starts its power iterations at fixed vectors.
    """
    for path in PACKAGE.rglob("*.py"):
        if path == PACKAGE / "privacy" / "noise.py" or PACKAGE / "solve" in path.parents:
            continue
        text = path.read_text()
        assert "urandom" not in text, path.name
        assert "np.random.seed" not in text, path.name
        code = [line for line in text.splitlines() if not line.lstrip().startswith((">>>", "..."))]
        assert not any("default_rng(" in line for line in code), path.name


READERS = {
    # Public columns, for the factor that they are.
    "problem/reading/factors.py",
    # An audit looks at all records at once.
    "audit/objective.py",
    "audit/softmax.py",
}


def test_nobody_reads_rows_but_the_room_of_records():
    """Everything else that depends on records is a kernel that `Summed.sum` adds up."""
    found = set()
    for path in PACKAGE.rglob("*.py"):
        if path.parent in (PACKAGE / "problem" / "records", PACKAGE / "problem" / "losses" / "phi"):
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            called = node.func if isinstance(node, ast.Call) else None
            if isinstance(called, ast.Attribute) and called.attr in ("take", "blocks"):
                found.add(path.relative_to(PACKAGE).as_posix())
    assert found == READERS


def test_import_pulls_in_no_extra():
    code = (
        "import sys, cvxqop; "
        "extras = ('matplotlib', 'tqdm', 'pandas', 'sklearn', 'numba', 'pyarrow', 'dask', "
        "'distributed'); "
        "print([m for m in extras if m in sys.modules])"
    )
    out = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout
    assert out.strip() == "[]"


# The builtin id() gives the address of an object, and a later object may have the same one. It
# stands here only where the object outlives the number.
ADDRESSES = {
    ("_cvxpy/holdings.py", "holdings"): "the objects stand beside their ids while the walk lasts",
    ("_cvxpy/nodes.py", "nodes"): "likewise",
    ("problem/glm_atom.py", "__init__"): "the atom keeps X and y in _given",
    ("problem/private/data.py", "__init__"): "the entries keep what was given",
    ("problem/private/data.py", "_given"): "likewise",
    ("problem/private/matching.py", "find"): "the entries keep what was given; for private only",
    ("problem/private/matching.py", "_is_elsewhere"): "likewise",
    ("problem/private/matching.py", "_sources"): "likewise",
    ("inference/path.py", "_with"): "the copy is made while the caller holds the parameter",
    ("solve/units.py", "_rescaled"): "the copy is made while the variables stand in the list",
    ("solve/rest/terms.py", "affine"): "likewise",
}


def calls_of_id(tree):
    """Names of the innermost functions that call the builtin id(), or pass it on."""
    stack = [(tree, "")]
    while stack:
        node, function = stack.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            function = node.name
        if isinstance(node, ast.Name) and node.id == "id" and isinstance(node.ctx, ast.Load):
            yield function
        stack += [(child, function) for child in ast.iter_child_nodes(node)]


def test_nothing_is_remembered_by_the_address_of_an_object_that_may_die():
    found = {
        (path.relative_to(PACKAGE).as_posix(), function)
        for path in PACKAGE.rglob("*.py")
        for function in calls_of_id(ast.parse(path.read_text()))
    }
    assert found == set(ADDRESSES)
