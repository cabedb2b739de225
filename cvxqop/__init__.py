"""Differentially private convex optimisation inside CVXPY."""
