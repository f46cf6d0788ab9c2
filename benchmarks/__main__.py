"""Runs the benchmarks named on the command line, or all of them."""

import importlib
import pkgutil
import sys

from rich.console import Console
from rich.table import Table

import benchmarks

TOOLS = {"data", "measure", "reach", "rivals"}


def main() -> None:
    modules = (m.name for m in pkgutil.iter_modules(benchmarks.__path__) if not m.name.startswith("_"))
    known = sorted(name for name in modules if name not in TOOLS)
    wanted = sys.argv[1:] or known
    if unknown := set(wanted) - set(known):
        sys.exit(f"No benchmark named {', '.join(sorted(unknown))}. There are: {', '.join(known)}.")
    console = Console()
    for name in wanted:
        module = importlib.import_module(f"benchmarks.{name}")
        table = Table(title=f"{name}: {(module.__doc__ or '').splitlines()[0]}", title_justify="left")
        rows = module.run()
        for column in rows[0]:
            table.add_column(column)
        for row in rows:
            table.add_row(*map(str, row.values()))
        console.print(table)


if __name__ == "__main__":
    main()
