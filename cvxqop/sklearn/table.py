"""A table in the place of X, read by a schema."""

from __future__ import annotations

from typing import Any

from cvxqop.errors import OptionError, ProblemError
from cvxqop.tables.rows import Rows
from cvxqop.tables.schema import Schema

__all__ = ["read_table"]


def read_table(schema: Schema, table: Any, y: Any) -> Rows:
    """Rows of a table, with y in the place of the column of the target unless it is None.

    Raises
    ------
    OptionError
        The schema has no target.
    """
    target = next(iter(schema._target.columns), None)
    if target is None:
        raise OptionError('schema must have a target, such as target={"spend": (0, 5_000)}.')
    if y is not None:
        names = [*schema._coding.columns, *schema._ids]
        try:
            table = {**{name: table[name] for name in names}, target: y}
        except Exception:
            table = None
        if table is None:
            raise ProblemError(
                "X must be a data frame or a dict with the columns that the schema declares, if y "
                "is given apart."
            )
    return schema.read(table)
