"""Proven smooth losses from the CVXPY expression of one number."""
