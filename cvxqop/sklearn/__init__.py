"""Estimators with scikit-learn's interface: fit, predict, pipelines. Extra ``cvxqop[sklearn]``."""

try:
    import sklearn  # noqa: F401
except ImportError:
    raise ImportError("The estimators need scikit-learn: pip install cvxqop[sklearn]") from None

from cvxqop.sklearn.classifiers import LinearSVC, LogisticRegression
from cvxqop.sklearn.regressors import (
    ElasticNet,
    HuberRegressor,
    Lasso,
    LinearRegression,
    LinearSVR,
    QuantileRegressor,
    Ridge,
)

__all__ = [
    "ElasticNet",
    "HuberRegressor",
    "Lasso",
    "LinearRegression",
    "LinearSVC",
    "LinearSVR",
    "LogisticRegression",
    "QuantileRegressor",
    "Ridge",
]
