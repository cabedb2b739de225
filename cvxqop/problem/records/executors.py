"""Who computes the partitions of a sum: one thread, or as many as there are processors."""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController

__all__ = ["one_blas_thread", "run", "workers"]

PAYS = 2**22
"""Entries of the rows of a pass from which threads are worth their start."""


def workers() -> int:
    """Processors that this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not every platform says
        return os.cpu_count() or 1


def run(
    work: Callable[[Any], Any], units: Sequence[Any], entries: int
) -> Generator[Any, None, None]:
    """``work`` of each unit, in the order of the units; ``entries`` is the size of all."""
    threads = min(workers(), len(units))
    if threads < 2 or entries < PAYS:
        yield from map(work, units)
        return
    with one_blas_thread(), ThreadPoolExecutor(threads) as pool:
        waiting: deque[Future[Any]] = deque()
        try:
            for unit in units:
                waiting.append(pool.submit(work, unit))
                if len(waiting) > 2 * threads:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()


_LOCK = threading.Lock()
_HELD: list[Any] = []
_USERS = [0]


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Products of blocks run in one thread each while several blocks are computed at once.

    The setting belongs to the process: the first pass makes it, the last one takes it back.
    """
    with _LOCK:
        _USERS[0] += 1
        if _USERS[0] == 1:
            _HELD.append(_controller().limit(limits=1, user_api="blas"))
    try:
        yield
    finally:
        with _LOCK:
            _USERS[0] -= 1
            if not _USERS[0]:
                _HELD.pop().restore_original_limits()
