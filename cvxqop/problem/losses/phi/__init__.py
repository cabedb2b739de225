"""Proven smooth losses from the CVXPY expression of one number; `recognise` is the way in.

reading, sheet, operations: an expression becomes a function of one of its nodes; polynomial,
smooth, piecewise, compose, atoms: what such functions are; interval, bounds: what is proven of
them; envelope, proximal: smoothing; loss: the loss that the rest of the library knows.
"""
