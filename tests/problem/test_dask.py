"""Sums over Dask arrays are those over lists of blocks to the bit, whoever computes them; no record
travels, in no result, error or name."""

import pickle
from itertools import pairwise

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse as sp

import cvxqop
from cvxqop.errors import ProblemError
from cvxqop.problem.losses.cut_loss import CutRows
from cvxqop.problem.private.data import match
from cvxqop.problem.records import executors
from cvxqop.problem.records.beside import Beside, Labels
from cvxqop.problem.records.blocks import as_records
from cvxqop.problem.records.clipping import ClippedRows
from cvxqop.problem.records.output_clipping import ClippedLabels, ClippedOutputs
from cvxqop.problem.records.outputs import OutputRows
from cvxqop.problem.records.pieces import Column, LabelLeaf, Leaf, Piece, TamedLeaf
from cvxqop.problem.records.rows import AffineRows

da = pytest.importorskip("dask.array")
dask = pytest.importorskip("dask")

N, P = 40_000, 20
EDGES = [0, 13_000, 13_500, 27_000, N]  # the second chunk is too small for a partition
SECRET = 0.123456789012345


def blocks(array):
    return [array[start:stop] for start, stop in pairwise(EDGES)]


def chunked(array):
    """Chunks of the same rows; columns are split as well."""
    columns = (7, P - 7) if array.shape[1:] == (P,) else array.shape[1:]
    return da.from_array(array, chunks=(tuple(np.diff(EDGES)), columns)[: array.ndim])


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N, P)) / np.sqrt(P)
    return X, np.clip(X[:, 0] + rng.standard_normal(N), -2, 2)


def leaf(data, name, kind=Leaf):
    return kind(as_records(data, name, (1, 2)), name, True, name)


def affine(X, y):
    """Rows y_i (x_i, 1) with offset y_i, and labels: every part of a row that reads an array."""
    x, label = leaf(X, "X"), Column(leaf(y, "y", LabelLeaf), np.ones(1))
    D = P + 1
    G, one = sp.eye_array(P, D, format="csr"), sp.csr_array(([1.0], ([0], [P])), shape=(1, D))
    linear = [Piece((label,), x, G, np.zeros(P)), Piece((label,), None, one, np.zeros(1))]
    offset = Piece((Column(leaf(y, "y"), np.ones(1)),), None, sp.csr_array((1, D)), np.ones(1))
    return AffineRows(linear, [[offset]], N, D, Beside(Labels((offset,), -0.5, 0.5)))


def outputs(X, y):
    """Rows x_i with k = 2 numbers, from two columns of X."""
    x, G = leaf(X, "X"), sp.eye_array(P, format="csr")
    numbers = Piece((), x, sp.csr_array((P, P)), np.eye(P)[:, :2])
    return OutputRows([Piece((), x, G, np.zeros(P))], [numbers], N, P, 2)


def tamed(X, y):
    x = leaf(X, "X", TamedLeaf)
    return AffineRows([Piece((), x, sp.eye_array(P, format="csr"), np.zeros(P))], [], N, P)


WEIGHTS = np.linspace(0.5, 2.0, N)
KINDS = {
    "affine": affine,
    "clipped": lambda X, y: ClippedRows(affine(X, y), 1.0, np.full(P + 1, 0.1), 0.5),
    "weighted and cut": lambda X, y: CutRows(
        ClippedRows(affine(X, y), 1.0, None, 0.5), [WEIGHTS], 0.25
    ),
    "outputs": lambda X, y: ClippedOutputs(outputs(X, y), 0.8, np.full((P, 2), 0.1), 0.5),
    "labels": lambda X, y: ClippedLabels(outputs(X, y), 0.8),
    "tamed": tamed,
}


def gram(A, C, scale):
    A = A.toarray() if sp.issparse(A) else A
    return scale * (A.T @ A), A.T @ C, C.sum(axis=0), float(len(C))


def largest(A, C):
    return (np.max(np.abs(C), axis=0, initial=0.0),)


def same(one, other):
    assert len(one) == len(other)
    for a, b in zip(one, other, strict=True):
        assert np.array_equal(a, b)


@pytest.fixture(params=["serial", "threads"])
def local(request, monkeypatch):
    """Who sums what lies in memory."""
    monkeypatch.setattr(executors, "workers", lambda: 1 if request.param == "serial" else 2)
    monkeypatch.setattr(executors, "PAYS", 1)


@pytest.mark.parametrize("kind", KINDS)
def test_sums_are_those_of_blocks_to_the_bit(kind, data, local):
    X, y = data
    here = KINDS[kind](blocks(X), blocks(y))
    there = KINDS[kind](chunked(X), da.from_array(y, chunks=9_000))
    assert there.remote
    assert not here.remote
    assert len(here.partitions) == 4
    assert np.array_equal(here.partitions, there.partitions)
    same(here.sum(gram, 2.0), there.sum(gram, 2.0))
    same(here.sum(gram, 2.0, fine=True), there.sum(gram, 2.0, fine=True))
    same(here.sum(largest, combine=np.maximum), there.sum(largest, combine=np.maximum))
    some = [(100, 300), (12_900, 13_700), (39_990, N)]
    same(here.sum(gram, 2.0, chosen=some), there.sum(gram, 2.0, chosen=some))
    same(here.sum(gram, 2.0, chosen=[]), there.sum(gram, 2.0, chosen=[]))
    several = [(gram, (1.0,)), (largest, (), False, some, np.maximum)]
    for one, other in zip(here.sums(several), there.sums(several), strict=True):
        same(one, other)


@pytest.mark.parametrize("kind", ["clipped", "outputs"])
def test_sparse_chunks(kind, data):
    X, y = data
    X = np.where(np.abs(X) > 0.3, X, 0.0)
    lengths = np.diff(EDGES)
    here = KINDS[kind](list(map(sp.csr_array, blocks(X))), blocks(y))
    for columns in ((P,), (7, P - 7)):
        there = da.from_array(X, chunks=(tuple(lengths), columns)).map_blocks(sp.csr_array)
        rows = KINDS[kind](there, chunked(y))
        assert rows.sparse
        same(here.sum(gram, 2.0), rows.sum(gram, 2.0))


def test_only_partitions_that_are_met_are_read(data):
    X, y = data
    begun = []

    def part(block, block_info=None):
        begun.append(block_info[0]["chunk-location"][0])
        return block

    there = tamed(chunked(X).rechunk({1: -1}).map_blocks(part, dtype=float, meta=X[:0]), y)
    begun.clear()
    there.sum(gram, 1.0, chosen=[(30_000, 30_001)])
    assert set(begun) == {3}


def test_a_frame_of_columns_is_read_once_for_x_and_y(data):
    X, y = data
    begun = []

    def part(block):
        begun.append(len(block))
        return block

    table = chunked(np.column_stack([X, y])).rechunk({1: -1})
    table = table.map_blocks(part, dtype=float, meta=X[:0])
    rows = KINDS["clipped"](table[:, :-1], table[:, -1])
    begun.clear()
    same(KINDS["clipped"](blocks(X), blocks(y)).sum(gram, 1.0), rows.sum(gram, 1.0))
    assert sorted(begun) == sorted(np.diff(EDGES))


def test_what_is_looked_at_before_a_pass_reads_nothing(data):
    def part(block):
        raise AssertionError("a chunk was read")

    X, y = data
    X = chunked(X).map_blocks(part, dtype=float, meta=X[:0])
    y = chunked(y).map_blocks(part, dtype=float, meta=y[:0])
    theta = cp.Variable(P)
    term = cvxqop.glm_loss("logistic", X, y, theta)
    assert term.describe() == f'glm_loss("logistic", X({N},{P}), y({N},), {theta.name()})'
    assert list(term.held()) == []
    problem = cp.Problem(cp.Minimize(term))
    match([], [problem.objective])
    options = {"bounds": cvxqop.Bounds(row_norm=1.0), "epsilon": 1.0, "delta": 1e-6}
    plan = cvxqop.plan(problem, private=[], **options)
    assert str(N) not in repr(plan)
    cvxqop.explain(problem, private=[])


def test_value_and_gradient_are_summed_by_workers(data):
    X, y = data
    theta = cp.Variable(P, value=np.linspace(-1, 1, P))
    here, there = (
        cvxqop.glm_loss("squared", *pair, theta) for pair in ((X, y), (chunked(X), chunked(y)))
    )
    assert float(there.value) == pytest.approx(np.sum((X @ theta.value - y) ** 2), rel=1e-12)
    np.testing.assert_allclose(there.grad[theta].toarray(), here.grad[theta].toarray(), rtol=1e-12)


def test_nothing_of_records_is_in_the_graph(data, monkeypatch):
    """A scheduler is shown small objects that show nothing; the whole graph pickles to no more
    than what the user's own graph does."""
    X = da.random.default_rng(0).standard_normal((N, P), chunks=(15_000, P))
    rows = KINDS["weighted and cut"](X, X[:, 0])
    shown = {}

    def get(graph, keys, **options):
        shown.update(graph)
        return dask.get(graph, keys)

    with dask.config.set(scheduler=get):
        rows.sum(gram, SECRET)
    assert len(shown) == 4  # three partitions and their sum
    text = repr(shown)
    assert "array(" not in text
    assert str(SECRET) not in text
    # the public weights of the partition are in its task, and nothing else as long as n
    assert len(pickle.dumps(shown)) < 8 * N + 40_000


REFUSED = {
    "unknown lengths": (lambda X, y: (X[X[:, 0] > 0], None), r"array\.compute_chunk_sizes\(\)"),
    "complex": (lambda X, y: (X.astype(complex), None), "real"),
    "three axes": (lambda X, y: (X[:, :, None], None), "3 axes"),
    "y in memory": (lambda X, y: (X, np.zeros(N)), "both be Dask arrays"),
    "X in memory": (lambda X, y: (np.zeros((N, P)), y), "both be Dask arrays"),
    "shorter y": (lambda X, y: (X, y[1:]), "one entry a row"),
    "a list": (lambda X, y: ([X, X], None), r"dask\.array\.concatenate"),
    "no array": (lambda X, y: (dask.delayed(1), None), "must be an array of Dask"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refusals(case, data):
    make, message = REFUSED[case]
    X, y = make(*map(chunked, data))
    with pytest.raises(ProblemError, match=message):
        cvxqop.glm_loss("squared", X, y, cp.Variable(P))


@pytest.mark.parametrize("role", ["private", "public"])
@pytest.mark.parametrize("given", [lambda X: [X], lambda X: X, lambda X: [np.ones(N), X]])
def test_a_dask_array_in_a_list_is_refused_with_the_way_out(role, given, data):
    """CVXPY has it in memory by then, so that nobody may think it has not."""
    X = chunked(data[0])
    problem = cp.Problem(cp.Minimize(cp.sum_squares(np.asarray(X) @ cp.Variable(P))))
    with pytest.raises(ProblemError, match=r"cvxqop\.glm_loss"):
        match(given(X) if role == "private" else [], [problem.objective],
              public=given(X) if role == "public" else [])  # fmt: skip


def test_a_frame_is_refused_with_the_way_to_an_array():
    dd = pytest.importorskip("dask.dataframe")
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    known = pd.DataFrame(rng.uniform(-1, 1, (100, 3)), columns=["y", "a", "b"])
    frame = dd.from_pandas(known, npartitions=3)
    for X, y in ((frame[["a", "b"]], frame["y"]), (frame.to_dask_array(lengths=True), frame["y"])):
        with pytest.raises(ProblemError, match=r"to_dask_array\(lengths=True\)"):
            cvxqop.glm_loss("squared", X, y, cp.Variable(X.shape[1]))
    table = frame.to_dask_array(lengths=True)
    theta = cp.Variable(2, value=[1.0, -1.0])
    term = cvxqop.glm_loss("squared", table[:, 1:], table[:, 0], theta)
    expected = np.sum((known["a"] - known["b"] - known["y"]) ** 2)
    assert float(term.value) == pytest.approx(expected, rel=1e-12)


def raising(block):
    raise ValueError(f"cannot read {block.ravel()[:3]} {SECRET}")


def broken(data, where=raising):
    X, y = data
    return KINDS["clipped"](chunked(X).map_blocks(where, dtype=float, meta=X[:0]), chunked(y))


def shared(data):
    """Chunks that are split: what fails is read once for two partitions."""
    X, y = data
    whole = da.from_array(X, chunks=(N, P)).map_blocks(raising, dtype=float, meta=X[:0])
    return KINDS["clipped"](whole.rechunk((10_000, P)), chunked(y))


@pytest.mark.parametrize("make", [broken, shared])
@pytest.mark.parametrize("scheduler", ["threads", "synchronous"])
def test_an_error_of_a_reader_is_told_by_its_type(make, scheduler, data):
    with dask.config.set(scheduler=scheduler), pytest.raises(ProblemError) as caught:
        make(data).sum(gram, 1.0)
    assert "ValueError" in str(caught.value)
    assert "123456" not in str(caught.value)
    assert caught.value.__context__ is None
    assert caught.value.__cause__ is None


def test_our_own_errors_keep_their_words(data):
    X, y = data
    X = np.where(X > 0.9, np.nan, X)
    with pytest.raises(ProblemError, match="NaN or infinite") as caught:
        KINDS["clipped"](chunked(X), chunked(y)).sum(gram, 1.0)
    assert caught.value.__context__ is None


def test_chunks_of_another_length_than_they_say(data):
    X = chunked(data[0][:, :2])
    lying = da.Array(X.dask, X.name, ((14_000, 500, 13_500, 12_000), (2,)), float)
    term = cvxqop.glm_loss("squared", lying, None, cp.Variable(2, value=[1.0, 1.0]))
    with pytest.raises(ProblemError, match="another shape than Dask was told"):
        term.value  # noqa: B018


def test_an_error_of_reading_in_this_process_is_told_by_its_type():
    class Slices:
        shape, dtype = (1000, 2), np.dtype(float)

        def __getitem__(self, key):
            raise OSError(f"row {SECRET}")

    term = cvxqop.glm_loss("squared", Slices(), None, cp.Variable(2, value=[1.0, 1.0]))
    with pytest.raises(ProblemError, match="could not be read: OSError") as caught:
        term.value  # noqa: B018
    assert caught.value.__context__ is None


@pytest.mark.parametrize("error", [MemoryError, KeyboardInterrupt])
def test_no_memory_and_an_interrupt_are_what_they_are(error):
    class Slices:
        shape, dtype = (1000, 2), np.dtype(float)

        def __getitem__(self, key):
            raise error

    with pytest.raises(error):
        cvxqop.glm_loss("squared", Slices(), None, cp.Variable(2, value=[1.0, 1.0])).value  # noqa: B018
