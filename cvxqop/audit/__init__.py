"""Audits: what releases and densities on neighbouring data sets say about the privacy claimed.

An audit finds faults; it proves nothing. Its results are computed from the data it is given and are
for the holder of those data. The suite runs with ``python -m cvxqop.audit``, on data of its own.
"""

from cvxqop.audit.call import Call
from cvxqop.audit.exact import Divergence, divergence
from cvxqop.audit.law import Law, draws_follow_law
from cvxqop.audit.sampling import LowerBound, lower_bound

__all__ = [
    "Call",
    "Divergence",
    "Law",
    "LowerBound",
    "divergence",
    "draws_follow_law",
    "lower_bound",
]
