"""What the calls inside a ``with`` block are charged to."""

from __future__ import annotations

import threading
from contextvars import ContextVar
from typing import Any, Self

from cvxqop.errors import BudgetError

__all__ = ["Enterable"]

_CURRENT: ContextVar[tuple[Any, ...]] = ContextVar("budgets", default=())
_ENTRIES = threading.Lock()
_open: list[Any] = []


class Enterable:
    """A ledger that a block of code is charged to: ``with budget:``."""

    def __enter__(self) -> Self:
        """Charge the calls inside that name no budget of their own.

        The block is that of this thread. A call of another thread, which has entered none, is
        refused while it lasts: else it would be charged to nobody.
        """
        with _ENTRIES:
            _open.append(self)
        _CURRENT.set((*_CURRENT.get(), self))
        return self

    def __exit__(self, *failure: object) -> None:
        """Leave the block; what was charged stands."""
        with _ENTRIES:
            _open.remove(self)
        _CURRENT.set(_CURRENT.get()[:-1])

    @classmethod
    def current(cls) -> Self | None:
        """The budget of the innermost block that this thread has entered.

        Raises
        ------
        BudgetError
            Another thread is in a block and this one is not.
        """
        stack = _CURRENT.get()
        if not stack and _open:
            raise BudgetError(
                "Another thread is in a block `with budget:`, and this one is not: pass budget=… "
                "to the call, or enter the block in the thread that calls. Nothing was charged."
            )
        return stack[-1] if stack else None
