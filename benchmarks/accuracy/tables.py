"""Mixed tables with holes: TableImputer against imputers of other libraries, on tables that it was not developed on.

Known cells are hidden at random (MCAR), or more often where another column is high or low (MAR). The error of a table
is the mean over its columns of RMSE over the standard deviation (numbers), MAE over that of the median (grades), and
errors over those of the most frequent level (others). Rivals get standardised columns, one for each level of a
category, and their answers are rounded to levels; all get the kinds of columns. `seconds` is wall time of fit and
transform.
A part: `python -m benchmarks.accuracy.tables --set development --imputers TableImputer "random forests" --rows 700`.
"""

import argparse
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness import report, table
from benchmarks.harness.rows import Absent, Row, median, row, timed
from benchmarks.harness.table_data import DEVELOPMENT, MASKS, ROWS, UNSEEN, MixedTable, hide, read
from benchmarks.rivals.tables import IMPUTERS

SETS = {"development": DEVELOPMENT, "unseen": UNSEEN}
SHARES = (0.1, 0.3, 0.5)
SEED = 7
OURS, REFERENCE = "TableImputer", "IterativeImputer"
RANKED = (OURS, "mean, median, mode", "KNNImputer", REFERENCE, "softImpute")
"""Imputers that are ranked: fast ones that never fail."""


def cell_rows(data: str, mixed: MixedTable, how: str, share: float, seed: int, imputers: Iterable[str]) -> list[Row]:
    """All imputers on one table with the same cells hidden."""
    hidden, rows = hide(mixed, how, share, seed), []
    if not hidden.any():
        return []
    for name in imputers:
        nouns = {"objective": f"{how} {share:.0%}", "data": data, "solver": name}
        filled: list[np.ndarray] = []
        try:
            seconds = timed(lambda name=name, f=filled: f.append(IMPUTERS[name](mixed, hidden)))["seconds"]
        except Absent as reason:
            rows.append(row(**nouns, skipped=str(reason)))
            continue
        except Exception as error:  # of a rival: it has no answer here
            if name.startswith(OURS):
                raise
            rows.append(row(**nouns, skipped=f"{type(error).__name__}: {str(error)[:80]}"))
            continue
        rows.append(row(**nouns, draw=seed, error=mixed.error(filled[0], hidden), seconds=seconds))
    return rows


def measured(
    names: Iterable[str], imputers: Iterable[str], rows: int = ROWS, shares: Iterable[float] = SHARES, seed: int = SEED
) -> Iterator[list[Row]]:
    """The rows of each table with each mask, one list after the other."""
    imputers, shares, warm = list(imputers), list(shares), False
    for name in names:
        try:
            mixed = read(name, rows)
        except Absent as reason:
            yield [row("", name, "", skipped=str(reason))]
            continue
        if not warm:  # compiles
            cell_rows(name, mixed, "MCAR", 0.3, seed, imputers)
            warm = True
        data = f"{name}, {mixed.codes.shape[0]} × {mixed.codes.shape[1]}"
        for how in MASKS:
            for share in shares:
                yield cell_rows(data, mixed, how, share, seed, imputers)


def summary(rows: list[Row]) -> tuple[list[dict[str, str]], str]:
    """Ranks, and errors and seconds against a reference, over all tables and masks."""
    cells = table.grouped([found for found in rows if "error" in found], ("objective", "data"))
    lines = []
    for name in IMPUTERS:
        pairs, times, ranks = [], [], []
        for group in cells.values():
            found = {one["solver"]: one for one in group}
            if name in found and REFERENCE in found:
                pairs.append(found[name]["error"] / found[REFERENCE]["error"])
                times.append(found[name]["seconds"] / found[REFERENCE]["seconds"])
            if name in RANKED and all(other in found for other in RANKED):
                ranks.append(1 + sum(found[other]["error"] < found[name]["error"] for other in RANKED))
        if pairs:
            line = {"imputer": name, "cells": str(len(pairs)), "error": f"{np.exp(np.mean(np.log(pairs))):.3f}"}
            line |= {"seconds": f"{median(times):.2f}", "rank": f"{np.mean(ranks):.2f}" if ranks else ""}
            lines.append(line)
    return lines, (
        f"error: geometric mean of ratios to {REFERENCE}, over tables and masks. seconds: median of ratios to it. "
        f"rank: mean, among {', '.join(RANKED)}."
    )


def run() -> Iterator[Row]:
    for rows in measured(UNSEEN, IMPUTERS):
        yield from rows


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.accuracy.tables", description=__doc__)
    parser.add_argument("--set", choices=SETS, default="unseen", help="of tables (unseen)")
    parser.add_argument("--tables", nargs="+", choices=[*DEVELOPMENT, *UNSEEN], metavar="NAME", help="some alone")
    parser.add_argument("--imputers", nargs="+", choices=IMPUTERS, default=list(IMPUTERS), metavar="NAME")
    parser.add_argument("--shares", nargs="+", type=float, default=SHARES, help="of cells that are hidden")
    parser.add_argument("--rows", type=int, default=ROWS, help=f"of a table at most ({ROWS})")
    parser.add_argument("--seed", type=int, default=SEED, help=f"of what is hidden ({SEED})")
    parser.add_argument("--output", type=Path, metavar="FILE.json", help="write the raw numbers there")
    asked = parser.parse_args()
    found: dict[str, Any] = {"metadata": report.metadata(), "rows": []}
    chosen = asked.tables or SETS[asked.set]
    for rows in measured(chosen, asked.imputers, asked.rows, asked.shares, asked.seed):
        found["rows"] += [report.plain({"benchmark": "tables", **one}) for one in rows]
        if asked.output:  # after each, so that a long run that is stopped leaves what it has found
            report.save(asked.output, found)
    table.show(found)


if __name__ == "__main__":
    main()
