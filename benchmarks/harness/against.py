"""The same cases on the working tree and on another commit, in turns, so that load on the machine affects both."""

import contextlib
import io
import json
import os
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from benchmarks.harness.data import DATA
from benchmarks.harness.report import ROOT, commit
from benchmarks.harness.rows import NOUNS, Mistake, Row

WORKER = Path("benchmarks", "harness", "worker.py")


class Side:
    """A process that runs the cases of one tree. It ends with the block, or when this process does."""

    def __init__(self, name: str, tree: Path, root: Path) -> None:
        self.name = name
        # A commit from before this protocol is measured by the benchmarks of the working tree.
        package = tree if (tree / WORKER).exists() else root
        paths = os.pathsep.join(map(str, (tree / "src", package)))
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-m", "benchmarks.harness.worker", str(tree)],
            env={**os.environ, "PYTHONPATH": paths, "BIFACTOR_DATA": str(DATA)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,  # Ctrl-C reaches this process alone, which then ends the other
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            with contextlib.suppress(OSError):
                pipe.close()

    def hear(self) -> Row:
        line = self.process.stdout.readline()
        if not line:
            raise Mistake(f"The process of the {self.name} tree ended by itself. Its last words are above.")
        return json.loads(line)

    def ask(self, **request: Any) -> Row:
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        return self.hear()

    def cases(self, benchmark: str) -> dict[tuple[str, ...], int]:
        answer = self.ask(do="list", benchmark=benchmark)
        return {tuple(case[noun] for noun in NOUNS): k for k, case in enumerate(answer.get("cases", []))}


@contextlib.contextmanager
def checkout(name: str, root: Path = ROOT) -> Iterator[Path]:
    """The files of a commit in a temporary folder: an archive, so that no worktree is left behind."""
    archive = subprocess.run(["git", "-C", str(root), "archive", commit(name, root)], capture_output=True, check=True)
    with tempfile.TemporaryDirectory(prefix="benchmarks-", ignore_cleanup_errors=True) as folder:
        with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as files:
            files.extractall(folder, filter="data")
        yield Path(folder)


def compare(
    names: list[str], other: str, rounds: int, root: Path = ROOT, tell: Callable[[str], None] = lambda line: None
) -> Iterator[tuple[str, list[Row]]]:
    """Rows of each benchmark: one for each case, round and side ("new" is the working tree)."""
    with checkout(other, root) as tree, Side("new", root, root) as new, Side("old", tree, root) as old:
        for side in (new, old):
            if error := side.hear().get("error"):
                raise Mistake(f"The {side.name} tree does not use its own library: {error}. Unset PYTHONPATH.")
        for name in names:
            yield name, compare_one(name, (new, old), rounds, tell)


def compare_one(name: str, sides: tuple[Side, Side], rounds: int, tell: Callable[[str], None]) -> list[Row]:
    known = [side.cases(name) for side in sides]
    rows = []
    for nouns in known[0] | known[1]:
        tell(f"{name}: {' · '.join(nouns)}")
        case = {"benchmark": name, **dict(zip(NOUNS, nouns, strict=True))}
        try:
            prepare(name, [(side, cases.get(nouns)) for side, cases in zip(sides, known, strict=True)])
            for k in range(rounds):
                for side in sides if k % 2 == 0 else sides[::-1]:
                    rows.append({**case, "side": side.name, "draw": k, **checked(side, side.ask(do="run"))})
        except Unable as reason:
            rows.append({**case, "skipped": str(reason)})
        for side in sides:
            side.ask(do="drop")
    return rows


class Unable(Exception):
    """A tree that cannot run a case, and the reason."""


def prepare(name: str, sides: list[tuple[Side, int | None]]) -> None:
    for side, number in sides:
        if number is None:
            raise Unable(f"The {side.name} tree has no such case.")
    for side, number in sides:
        checked(side, side.ask(do="prepare", benchmark=name, case=number))


def checked(side: Side, answer: Row) -> Row:
    if "skipped" in answer:
        raise Unable(answer["skipped"])
    if "error" in answer:
        raise Unable(f"The {side.name} tree cannot run it: {answer['error']}")
    return answer
