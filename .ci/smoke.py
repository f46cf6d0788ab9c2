"""Install a wheel into an empty environment and use it: `python .ci/smoke.py dist/bifactor-*.whl`.

It runs the first example of the README, `bifactor doctor` and `bifactor demo`, from a folder with nothing else in it.
"""

import os
import re
import subprocess
import sys
import tempfile
import time
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def first_example() -> str:
    """The first block of Python in the README."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    found = re.search(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    assert found is not None, "The README has no example."
    return found[1]


def smoke(wheel: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder) / "environment"
        venv.create(home, with_pip=True)
        tools = home / ("Scripts" if os.name == "nt" else "bin")
        clean = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONHOME")}
        clean["PYTHONUTF8"] = "1"

        def run(*command: str) -> None:
            print("$", " ".join(part if "\n" not in part else "…" for part in command), flush=True)
            began = time.monotonic()
            subprocess.run([str(tools / command[0]), *command[1:]], cwd=folder, env=clean, check=True)
            print(f"# {time.monotonic() - began:.1f} s", flush=True)

        run("python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", f"{wheel.resolve()}[plot]")
        run("python", "-c", "import bifactor; print(bifactor.__file__)")
        run("python", "-W", "error", "-c", first_example())
        run("bifactor", "--version")
        run("bifactor", "doctor")
        run("bifactor", "demo", "--output", "demo.html")
        assert (Path(folder) / "demo.html").stat().st_size > 0


if __name__ == "__main__":
    for name in sys.argv[1:]:
        smoke(Path(name))
    print(f"{len(sys.argv) - 1} installed and used.")
