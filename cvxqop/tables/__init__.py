"""From a table to rows: what its columns may hold, stated in public."""

from cvxqop.tables.categories import Category
from cvxqop.tables.coefficients import Coefficients
from cvxqop.tables.ranges import Date, Number
from cvxqop.tables.rows import Rows
from cvxqop.tables.schema import Schema

__all__ = ["Category", "Coefficients", "Date", "Number", "Rows", "Schema"]
