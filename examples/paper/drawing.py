"""What the three figures share: colours, tables as CSV, and where both are written."""

import argparse
import csv
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parents[2] / "docs" / "paper"

# Okabe and Ito: told apart by colour-blind readers, and in grey by their dashes.
BLACK, ORANGE, SKY, GREEN, BLUE, RED, PURPLE, GREY = (
    "#000000", "#E69F00", "#56B4E9", "#009E73", "#0072B2", "#D55E00", "#CC79A7", "#888888",
)  # fmt: skip


def arguments(text, name):
    """``--out``, a PNG beside whose name the CSV goes, and ``--quick``."""
    parser = argparse.ArgumentParser(description=text.splitlines()[0])
    parser.add_argument("--out", type=Path, default=HERE / f"{name}.png", help="the PNG")
    parser.add_argument("--quick", action="store_true", help="fewer points, a few seconds")
    return parser.parse_args()


def table(file, rows):
    """Dicts with equal keys, six digits."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        for row in rows:
            writer.writerow({key: _cell(value) for key, value in row.items()})
    print(f"{len(rows)} rows in {file}")


def _cell(value):
    if isinstance(value, str | int):
        return value
    return f"{value:.6g}" if value is not None and np.isfinite(value) else ""


def panels(*shape, size, **options):
    """Figure and axes of matplotlib, or None where it is not installed."""
    try:
        import matplotlib
    except ImportError:
        print("No plot: matplotlib is not installed")
        return None
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    plt.rcParams.update({"font.size": 9, "axes.grid": True, "grid.alpha": 0.25})
    return plt.subplots(*shape, figsize=size, layout="constrained", **options)


def save(figure, file):
    """The PNG, at a size for a page."""
    figure.savefig(file, dpi=150)
    print(f"Plot written to {file}")
