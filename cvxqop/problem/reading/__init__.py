"""From a CVXPY expression to terms over records."""
