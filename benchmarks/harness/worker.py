"""Runs the cases of one tree for `--against`: `python -m benchmarks.harness.worker FOLDER`.

A request and its answer are one line of JSON each, on standard input and output. An answer may be an `error` instead.

    {"do": "list", "benchmark": NAME}               {"cases": [{"objective": …, "data": …, "solver": …}, …]}
    {"do": "prepare", "benchmark": NAME, "case": k}  {"ready": true} after a first run, or {"skipped": REASON}
    {"do": "run"}                                   {"seconds": …, "iterations": …}
    {"do": "drop"}                                  {"dropped": true}, the data of the case are released

Other commits use this protocol too: extend it, but do not change it.
"""

import gc
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.harness.report import plain
from benchmarks.harness.rows import Absent, Row, load


class Worker:
    """Holds at most one prepared case."""

    def __init__(self) -> None:
        self.once: Callable[[], Row] | None = None

    def answer(self, request: Row) -> Row:
        try:
            return getattr(self, f"do_{request.pop('do')}")(**request)
        except Absent as reason:
            return {"skipped": str(reason)}
        except Exception as error:  # an older or newer tree may lack what a case calls
            return {"error": f"{type(error).__name__}: {error}"}

    def do_list(self, benchmark: str) -> Row:
        return {"cases": [case.nouns for case in getattr(load(benchmark), "CASES", [])]}

    def do_prepare(self, benchmark: str, case: int) -> Row:
        self.do_drop()
        self.once = load(benchmark).CASES[case].prepare()
        self.once()  # compiles, and fills caches
        return {"ready": True}

    def do_run(self) -> Row:
        assert self.once is not None, "prepare comes first"
        gc.collect()
        return plain(self.once())

    def do_drop(self) -> Row:
        self.once = None
        gc.collect()
        return {"dropped": True}


def belongs(folder: Path) -> Row:
    """The first answer: whether this process imports the library of its own tree, and no installed one."""
    import bifactor

    found = Path(bifactor.__file__).resolve()
    return {"ready": True} if found.is_relative_to(folder.resolve()) else {"error": f"bifactor came from {found}"}


def main(folder: str) -> None:
    with os.fdopen(os.dup(1), "w") as answers:
        os.dup2(2, 1)  # what a case prints must not get between the answers

        def send(message: dict[str, Any]) -> None:
            print(json.dumps(message), file=answers, flush=True)

        send(belongs(Path(folder)))
        worker = Worker()
        for line in sys.stdin:
            send(worker.answer(json.loads(line)))


if __name__ == "__main__":
    main(sys.argv[1])
