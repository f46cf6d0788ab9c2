"""Runs the benchmarks named on the command line, or all of them: `python -m benchmarks --help`."""

import argparse
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

from benchmarks.harness import against, report, table
from benchmarks.harness.rows import Mistake, Row, load, names, or_skipped


def arguments(given: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description="Measure, print a table, keep the numbers."
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"all where none is given: {', '.join(names())}")
    parser.add_argument("--output", type=Path, metavar="FILE.json", help="write the raw numbers there")
    parser.add_argument("--table", type=Path, metavar="FILE.json", help="print the table of such a file; run nothing")
    parser.add_argument(
        "--against", metavar="COMMIT", help="time this tree and a commit in turns, other libraries left out"
    )
    parser.add_argument("--rounds", type=int, default=7, metavar="N", help="of --against, for each case (7)")
    return parser.parse_args(given)


def measured(wanted: list[str]) -> Iterator[tuple[str, list[Row]]]:
    for name in wanted:
        module = load(name)
        yield name, [report.plain({"benchmark": name, **row}) for row in or_skipped(module.run)]


def comparable(wanted: list[str]) -> list[str]:
    able = [name for name in names() if hasattr(load(name), "CASES")]
    for name in wanted:
        if name not in able:
            raise Mistake(f"{name} has no cases to time on two commits. Choose from: {', '.join(able)}.")
    return wanted or able


def main(given: list[str] | None = None) -> None:
    options = arguments(sys.argv[1:] if given is None else given)
    if options.table:
        return table.show(report.read(options.table))
    for name in options.names:
        load(name)
    if options.rounds < 1:
        raise Mistake(f"--rounds is {options.rounds}. Give a number from 1.")
    if options.against:
        facts = report.metadata(against=report.commit(options.against), rounds=options.rounds)
        tell = lambda line: print(line, file=sys.stderr, flush=True)  # noqa: E731
        parts = against.compare(comparable(options.names), options.against, options.rounds, tell=tell)
    else:
        facts, parts = report.metadata(), measured(options.names or names())
    rows: list[Row] = []
    for _, part in parts:
        rows += part
        table.show({"metadata": facts, "rows": part})
        if options.output:  # after each, so that a long run that is stopped leaves what it has found
            report.save(options.output, {"metadata": facts, "rows": rows})
    return None


def entry() -> None:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that temporary folders go then too
    try:
        main()
    except Mistake as mistake:
        sys.exit(str(mistake))
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    entry()
