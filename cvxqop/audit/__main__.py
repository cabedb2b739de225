"""``python -m cvxqop.audit``: run the suite, print its table, and exit with 1 if a row fails."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Sequence

from cvxqop.audit import suite
from cvxqop.audit.table import table

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit code of the suite: 0 if every row passes, 1 if not."""
    parser = argparse.ArgumentParser(
        prog="python -m cvxqop.audit",
        description="Audit every mechanism on worst-case neighbours, on data of its own.",
    )
    parser.add_argument("--quick", action="store_true", help="a few rows, a few seconds each")
    parser.add_argument("--processes", type=int, default=2, help="worker processes (2)")
    parser.add_argument("--draws", type=int, default=1500, help="releases a row and data set")
    parser.add_argument("--seed", type=int, help="repeat a run; left out: system's generator")
    options = parser.parse_args(arguments)
    if options.draws < 40 or options.processes < 1:
        parser.error("--draws must be at least 40 and --processes at least 1")
    start = time.perf_counter()
    findings = suite.run(
        suite.rows(quick=options.quick),
        draws=options.draws,
        processes=options.processes,
        seed=options.seed,
    )
    print(table(findings, draws=options.draws, seed=options.seed))
    elapsed, used = time.perf_counter() - start, sum(os.times()[:4])
    print(
        f"\nTime: {elapsed:.0f} s; worker processes: {options.processes}. CPU time: {used:.0f} s."
    )
    return 0 if all(finding.holds for finding in findings) else 1


if __name__ == "__main__":
    sys.exit(main())
