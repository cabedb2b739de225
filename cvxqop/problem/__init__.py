"""WHAT is private: reads a CVXPY problem. Knows CVXPY, knows no noise."""
