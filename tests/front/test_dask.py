"""A release from Dask arrays is that from the same blocks in memory: on threads, on two processes,
and after one of them was killed. What fails there says nothing of records."""

import os
import signal
import time
from contextlib import contextmanager

import cvxpy as cp
import numpy as np
import pytest

import cvxqop

da = pytest.importorskip("dask.array")
dask = pytest.importorskip("dask")
distributed = pytest.importorskip("distributed")

P, PARTITIONS, ROWS = 10, 4, 20_000
SECRET = "0.8414709"


def chunk(k, rows=ROWS, margins=False):
    """Records of partition k with a target: rows (rows, P + 1), the same on any machine."""
    rng = np.random.default_rng(k)
    X = rng.standard_normal((rows, P)) * (0.5 / np.sqrt(P))
    y = X[:, :3].sum(axis=1) + 0.1 * rng.standard_normal(rows)
    return np.column_stack([X, np.sign(y) if margins else np.clip(y, -1, 1)])


def lazy(make, rows=ROWS, partitions=PARTITIONS):
    """X and y as Dask arrays of the chunks that ``make(k)`` gives."""

    def block(block_id):
        return make(block_id[0])

    chunks = ((rows,) * partitions, (P + 1,))
    table = da.map_blocks(block, chunks=chunks, dtype=float, meta=np.empty((0, 0)))
    return table[:, :P], table[:, P]


def in_memory(make, partitions=PARTITIONS):
    tables = [make(k) for k in range(partitions)]
    return [t[:, :P] for t in tables], [t[:, P] for t in tables]


def released(X, y, loss="squared", **options):
    theta = cp.Variable(P)
    term = cvxqop.glm_loss(loss, X, y, theta)
    problem = cp.Problem(cp.Minimize(term + 3.0 * cp.norm1(theta)), [cp.norm_inf(theta) <= 5])
    bounds = cvxqop.Bounds(row_norm=1.0, offset=None if loss == "logistic" else 1.0)
    pay = {"bounds": bounds, "epsilon": 1.0, "delta": 1e-6, "seed": 1, **options}
    return cvxqop.privatize(problem, private=[], **pay)


@contextmanager
def cluster(workers, failures):
    """Worker processes with a thread each."""
    with (
        dask.config.set({"distributed.scheduler.allowed-failures": failures}),
        distributed.LocalCluster(
            n_workers=workers, threads_per_worker=1, processes=True, dashboard_address=":0"
        ) as made,
        distributed.Client(made) as client,
    ):
        yield client


@pytest.fixture(scope="module")
def client():
    with cluster(2, 2) as client:
        yield client


@pytest.fixture(scope="module")
def blocks():
    return in_memory(chunk)


@pytest.fixture(scope="module")
def labelled():
    return in_memory(lambda k: chunk(k, margins=True))


@pytest.mark.parametrize("adjacency", ["replace_one", "add_remove"])
def test_quadratic_forms_are_equal_to_the_bit(client, blocks, adjacency):
    here = released(*blocks, adjacency=adjacency).private_loss
    there = released(*lazy(chunk), adjacency=adjacency).private_loss
    with dask.config.set(scheduler="threads"):
        threads = released(*lazy(chunk), adjacency=adjacency).private_loss
    for other in (there, threads):
        assert np.array_equal(here.hessian, other.hessian)
        assert np.array_equal(here.gradient, other.gradient)


CASES = {
    "logistic": {"loss": "logistic"},
    "huber": {"loss": "huber"},
    "squared hinge": {"loss": "squared_hinge"},
    "clipped gradients": {"loss": "logistic", "perturbation": cvxqop.Linear(clip=0.5)},
    "stages": {"perturbation": cvxqop.Gaussian(stages=2)},
    "adaptive": {"perturbation": cvxqop.Gaussian(stages="adaptive")},
    "svrg": {"loss": "logistic", "solver_options": {"variant": "svrg", "max_iter": 6}},
    "plain": {"loss": "logistic", "solver_options": {"variant": "plain", "max_iter": 6}},
}


@pytest.mark.parametrize("case", CASES)
def test_other_losses_and_solvers(client, case, blocks, labelled):
    options = CASES[case]
    margins = options.get("loss", "") in ("logistic", "squared_hinge")
    X, y = lazy(lambda k: chunk(k, margins=margins))
    here = released(*(labelled if margins else blocks), **options)
    there = released(*distributed.client.default_client().persist([X, y]), **options)
    np.testing.assert_allclose(theta(there), theta(here), rtol=1e-12, atol=1e-14)


def theta(solution):
    return next(iter(solution.values.values()))


def test_a_pass_for_the_model_is_that_of_the_evaluation(client, labelled, monkeypatch):
    """A step of the Newton engine costs one pass over the cluster."""
    from cvxqop.problem.records import dask_sums
    from cvxqop.solve.engines import newton

    passes, models, compute, model = [], [], dask_sums.compute, newton._model
    monkeypatch.setattr(dask_sums, "compute", lambda *a: passes.append(1) or compute(*a))
    monkeypatch.setattr(newton, "_model", lambda *a: models.append(1) or model(*a))
    X, y = client.persist(list(lazy(lambda k: chunk(k, margins=True))))
    released(X, y, "logistic")
    assert len(models) > 1
    # the labels, the start, and a look after each model
    assert len(passes) <= len(models) + 3


def test_a_worker_is_killed_half_way(client, tmp_path):
    """10^6 records, each partition generated where it is read; the fifth kills its process once."""
    marker, partitions, rows = str(tmp_path / "killed"), 10, 100_000

    def deadly(k):
        if k == 5 and not os.path.exists(marker):
            time.sleep(0.5)  # others are done by then
            with open(marker, "w"):
                pass
            os.kill(os.getpid(), signal.SIGKILL)
        return chunk(k, rows)

    def calm(k):
        return chunk(k, rows)

    undisturbed = released(*lazy(calm, rows, partitions)).private_loss
    assert not os.path.exists(marker)
    disturbed = released(*lazy(deadly, rows, partitions)).private_loss
    assert os.path.exists(marker)
    assert np.array_equal(undisturbed.hessian, disturbed.hessian)
    assert np.array_equal(undisturbed.gradient, disturbed.gradient)


def said(client):
    """All that workers, their nannies and the scheduler have logged."""
    logs = [client.get_worker_logs(), client.get_worker_logs(nanny=True)]
    return repr((logs, client.get_scheduler_logs(), client.run_on_scheduler(_story)))


def _story(dask_scheduler):
    return [repr(task) for task in dask_scheduler.tasks.values()], repr(dask_scheduler.get_events())


def raising(k):
    raise ValueError(f"row {SECRET}: {chunk(k)[:2]}")


def not_finite(k):
    table = chunk(k)
    table[0, 0] = np.nan
    return table


def text_instead(k):
    return np.full((ROWS, P + 1), SECRET, dtype=object)


FAULTS = {
    "an error with rows in its words": (raising, "ValueError"),
    "records that are not finite": (not_finite, "NaN or infinite"),
    "text in the place of numbers": (lambda k: float(f"{SECRET} years"), "ValueError"),
    "no array of numbers": (text_instead, "real numbers"),
}


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_no_row_in_errors_and_logs(client, fault, loss, capfd):
    make, message = FAULTS[fault]
    X, y = lazy(make)
    # chunks that are split are read by tasks of their own
    for X_, y_ in ((X, y), (X.rechunk({0: ROWS // 2}), y)):
        budget = cvxqop.Budget(epsilon=1.0, delta=1e-6)
        with pytest.raises(cvxqop.ProblemError, match=message) as caught:
            released(X_, y_, loss, budget=budget)
        assert not budget.history
        assert caught.value.__cause__ is None
        assert caught.value.__context__ is None
        for text in (str(caught.value), said(client), "".join(capfd.readouterr())):
            assert SECRET not in text
            assert "years" not in text


def test_a_reader_that_fails_after_the_draw(client, tmp_path):
    """The charge stands, and the error has no word of the reader."""
    read = str(tmp_path / "read")

    def later(k):
        with open(read, "a") as file:
            file.write("x")
        if os.path.getsize(read) > 4 * PARTITIONS:
            raise ValueError(SECRET)
        return chunk(k, margins=True)

    budget = cvxqop.Budget(epsilon=1.0, delta=1e-6)
    with pytest.raises(cvxqop.AccuracyError) as caught:
        released(*lazy(later), "logistic", budget=budget)
    assert SECRET not in str(caught.value)
    assert len(budget.history) == 1
    assert caught.value.__context__ is None


def test_a_worker_that_is_killed_again_and_again():
    def deadly(k):
        os.kill(os.getpid(), signal.SIGKILL)

    budget = cvxqop.Budget(epsilon=1.0, delta=1e-6)
    with cluster(1, 0), pytest.raises(cvxqop.ProblemError, match="KilledWorker") as caught:
        released(*lazy(deadly), budget=budget)
    assert caught.value.__context__ is None
    assert not budget.history


@pytest.mark.parametrize("rows", [2, "mean"])
def test_persons_are_refused_before_the_charge(rows):
    X = da.from_array(np.full((12, 2), 0.1), chunks=(6, 2))
    y = da.from_array(np.full(12, 0.1), chunks=6)
    w = cp.Variable(2)
    problem = cp.Problem(cp.Minimize(cvxqop.glm_loss("squared", X, y, w)))
    budget = cvxqop.Budget(epsilon=1.0, delta=1e-5)
    before = str(budget)
    with pytest.raises(cvxqop.ProblemError, match="ids are ranked on this machine"):
        cvxqop.privatize(
            problem,
            private=[],
            persons=np.arange(12) // 2,
            rows_per_person=rows,
            bounds=cvxqop.Bounds(row_norm=1.0, offset=1.0),
            epsilon=0.5,
            delta=1e-6,
            budget=budget,
        )
    assert str(budget) == before
