"""What a command does not import, which is what its start waits for."""

import json
import subprocess
import sys

import pytest

RATINGS = "user,item,rating\n" + "".join(f"u{k % 40},{k * 7 % 31},{1 + k % 5}\n" for k in range(600))
SCRIPT = """
import json, sys
from bifactor.cli.main import main
try:
    main(sys.argv[1:])
except SystemExit as end:
    assert not end.code, end.code
print(json.dumps(sorted(sys.modules)), file=sys.stderr)
"""


def modules(*arguments):
    """What a fresh process has imported after a command."""
    done = subprocess.run([sys.executable, "-c", SCRIPT, *arguments], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return set(json.loads(done.stderr.splitlines()[-1]))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("light")
    (place / "ratings.csv").write_text(RATINGS)
    (place / "pairs.csv").write_text("user,item\nu1,3\nu2,5\nnobody,11\n")
    heavy = {"sklearn", "pandas", "numba"}
    used = modules("complete", str(place / "ratings.csv"), "--rank", "2", "-o", str(place / "fit"))
    assert not used & heavy
    return place


@pytest.mark.parametrize("option", ["--help", "--version"])
def test_help_imports_none_of_the_numerical_libraries(option):
    assert not modules(option) & {"numpy", "scipy", "sklearn", "pandas", "numba", "bifactor.models"}


def test_predictions_need_neither_scikit_learn_nor_pandas_nor_numba(folder):
    for command in (
        ["predict", str(folder / "fit"), str(folder / "pairs.csv")],
        ["recommend", str(folder / "fit"), "--user", "u1"],
    ):
        assert not modules(*command) & {"sklearn", "pandas", "numba"}


def test_importing_the_library_imports_nothing():
    script = "import sys, bifactor; print([m for m in ('numpy', 'scipy', 'sklearn', 'numba') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stdout.strip() == "[]", done.stderr


def test_workflows_are_imported_without_scikit_learn_and_numba():
    script = "import sys, bifactor as bf\n"
    script += "rooms = bf.completion, bf.recommender, bf.imputation, bf.pictures, bf.tomography\n"
    script += "names = [getattr(room, name) for room in rooms for name in room.__all__]\n"
    script += "print([m for m in ('sklearn', 'pandas', 'numba') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stdout.strip() == "[]", done.stderr
