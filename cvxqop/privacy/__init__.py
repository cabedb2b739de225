"""HOW MUCH noise: numbers in, numbers out. Never CVXPY, never a record."""
