"""Results as JSON: `{"metadata": {…}, "rows": [{…}, …]}`. Names of machines and folders stay out of it."""

import datetime
import json
import math
import platform
import subprocess
from importlib.metadata import version
from pathlib import Path
from typing import Any

from benchmarks.harness.rows import Mistake, Row

ROOT = Path(__file__).resolve().parents[2]


def git(*arguments: str, root: Path = ROOT) -> str:
    done = subprocess.run(["git", "-C", str(root), *arguments], capture_output=True, text=True)
    if done.returncode:
        raise Mistake(done.stderr.strip() or f"git {arguments[0]} failed.")
    return done.stdout.strip()


def commit(name: str = "HEAD", root: Path = ROOT) -> str:
    try:
        return git("rev-parse", "--short=10", "--verify", f"{name}^{{commit}}", root=root)
    except Mistake:
        raise Mistake(
            f"{name!r} is not a commit of this repository. Give a hash, branch or tag of `git log`."
        ) from None


def metadata(**more: Any) -> Row:
    from bifactor.kernels.threading import thread_count  # a tree that is measured may not have it

    try:
        here, changed = commit(), bool(git("status", "--porcelain", "--untracked-files=no"))
    except (Mistake, OSError):  # unpacked from an archive
        here, changed = None, None
    return {
        "commit": here,
        "changed": changed,
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "threads": thread_count(),
        "python": platform.python_version(),
        **{name: version(name) for name in ("numpy", "numba")},
        **more,
    }


def save(path: Path, report: dict[str, Any]) -> None:
    try:
        path.write_text(json.dumps(plain(report), indent=1, ensure_ascii=False, allow_nan=False) + "\n")
    except OSError as error:
        raise Mistake(f"{path.name} cannot be written: {error.strerror}. Choose another file.") from None


def read(path: Path) -> dict[str, Any]:
    try:
        report = json.loads(path.read_text())
        return {"metadata": dict(report["metadata"]), "rows": list(report["rows"])}
    except (OSError, ValueError, KeyError, TypeError):
        raise Mistake(f"{path.name} holds no results. Give a file that --output has written.") from None


def plain(value: Any) -> Any:
    """NumPy's numbers as Python's, and None for what JSON has no number for."""
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    value = value.item() if hasattr(value, "item") else value
    return None if isinstance(value, float) and not math.isfinite(value) else value
