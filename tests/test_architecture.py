"""Rules of the architecture: what is public, what may import what, how long functions may be."""

import ast
import importlib
import inspect
import re
from pathlib import Path

import pytest

import bifactor as bf

SOURCE = Path(bf.__file__).parent
MODULES = sorted(SOURCE.rglob("*.py"))
REPRODUCE = sorted((Path(__file__).parents[1] / "reproduce/src").rglob("*.py"))

# From the ground up; a module may import its own floor and those below it.
FLOORS = [
    {"errors", "_compat"},
    {"arrays"},
    {"validation", "describe"},
    {"display"},
    {"kernels"},
    {"executors"},
    {"linear_map"},
    {"svd", "losses", "blocks"},
    {"factors"},
    {"metrics"},
    {"operators", "penalties"},
    {"problems"},
    {"inits", "steps"},
    {"solvers"},
    {"running", "extend"},
    {"data"},
    {"testing"},
    {"ranking"},
    {"models"},
    {"estimators"},
    {"applications"},
    {"anndata", "plots"},
    {"cli"},
    {"__main__"},
]
FLOOR = {room: level for level, rooms in enumerate(FLOORS) for room in rooms}

PUBLIC = {
    "bifactor": (
        "Certificate FactorAnalysis Function History ImageCompletion LogisticPCA MatrixCompletion Memory Objective "
        "OneBitCompletion PoissonPCA Posterior Problem Recommender Result Search StateTomography Status TableImputer "
        "all_cells anndata completion data errors estimators executors extend imputation inits load losses metrics "
        "models operators penalties pictures plots ranking recommender solve solvers steps testing threads tomography"
    ),
    "bifactor.anndata": "pca",
    "bifactor.extend": (
        "Array Blocks COUNTS Dense Exact FactorCurve Factors Footprint Free InputError LinearMap LowRankPlus Measured "
        "MeasuredCurve Moving NUMBERS Nothing Phase Point Provisional SIGNS Settled Shared Staged Stalled State "
        "Step Value backtrack conj herm inner is_complex matrix_shape namespace norm power_norm_squared preconditioned "
        "probed_mean_square reciprocal require_explicit require_finite require_flag require_free "
        "require_instance require_measurements require_no_fixed require_numpy require_plain require_ridge require_rows "
        "require_symmetric run_memory search_memory settle_nonnegative settle_positive"
    ),
    "bifactor.losses": (
        "DataFit ExpectedCounts Huber Logistic Loss NegativeBinomial Ordinal Poisson Probit Shifted Squared Targets"
    ),
    "bifactor.operators": (
        "Bound Comparisons Curve DCT DataBound Entries Evaluated Featured Fourier Full FullTable Gaussian Hadamard "
        "Linear Noiselet Operator Partitioned Pauli RankOne Recomputed Scaled Stacked Subsampled pattern"
    ),
    "bifactor.executors": (
        "AxpyArray Block BlockData BlockResult Dask Executor PassResult RemoteExecutor Streamed Workspace"
    ),
    "bifactor.penalties": "Penalty Ridge Term Weights balance",
    "bifactor.penalties.balance": "Balance Elementwise Frobenius",
    "bifactor.steps": "Backtracking Constant CurveSearch Semidefinite Smooth StepSize StronglyConvex",
    "bifactor.inits": "Given Init Random Spectral Zero",
    "bifactor.solvers": (
        "AltMin BFGD FGD GuaranteedMC MiFGD Newton NuclearNorm PCG ProcrustesFlow Race RankContinuation Refitted "
        "RidgeHomotopy SPG SVP ScaledGD SoftImpute Solver SparseApproxSDP Variational"
    ),
    "bifactor.estimators": (
        "FactorAnalysis ImageCompletion LogisticPCA MatrixCompletion MisfitWarning OneBitCompletion PoissonPCA "
        "Recommender StateTomography TableImputer linear_inversion nearest_state"
    ),
    "bifactor.applications.completion": "CompletedMatrix FitEvaluation Predictions complete evaluate predict",
    "bifactor.applications.imputation": "ImputedTable impute",
    "bifactor.applications.pictures": "Inpainted inpaint",
    "bifactor.applications.recommender": "RecommendationLists complete evaluate recommend",
    "bifactor.applications.tomography": "EstimatedState tomography",
    "bifactor.plots": (
        "ConvergenceDisplay ImageDisplay ObservedPredictedDisplay ScreeDisplay SearchDisplay SpectrumDisplay"
    ),
    "bifactor.models": "Fit Link Model Prediction PredictiveDistribution RowModel load",
    "bifactor.ranking": (
        "Difference Evaluation Recommends Split average_precision by_entry by_time by_user coverage evaluate hit_rate "
        "interval judge ndcg popularity_share precision recall reciprocal_rank"
    ),
    "bifactor.data": (
        "BlockDataset BlockStore BlockView CellMask Dataset Names Observations Origin Part RandomCells RandomLines "
        "Recoding Rectangles RowTails Summary holes_like partition read read_counts"
    ),
    "bifactor.testing": (
        "check_dataset check_executor check_gradient check_invariance check_loss check_operator check_penalty "
        "check_solver"
    ),
}


def room_of(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(SOURCE)))
def test_imports_point_downward(path):
    room = room_of(path)
    if room == "__init__":
        return
    for node in ast.walk(ast.parse(path.read_text())):
        names = []
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("bifactor"):
            names = [node.module] if "." in node.module else [f"bifactor.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names if alias.name.startswith("bifactor.")]
        for name in names:
            other = name.split(".")[1]
            assert FLOOR[other] < FLOOR[room] or other == room or only_for_types(path, name), f"{room} imports {other}"


def test_applications_do_not_import_each_other():
    """What they share lies beside them."""
    rooms = [path.name for path in (SOURCE / "applications").iterdir() if path.is_dir() and path.name[0] != "_"]
    for room in rooms:
        for path in (SOURCE / "applications" / room).rglob("*.py"):
            others = set(re.findall(r"bifactor\.applications\.(\w+)", path.read_text())) & set(rooms)
            assert others <= {room}, path


def test_few_modules_look_others_up_by_name():
    """Where imports would point upward: what the package offers, its commands, `Objective.memory`; and at a fork."""
    users = [str(p.relative_to(SOURCE)) for p in MODULES if "import_module(" in p.read_text()]
    assert users == ["_compat.py", "cli/main.py", "problems/objective.py"]


def only_for_types(path: Path, name: str) -> bool:
    guarded = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.If)]
    return any(
        isinstance(inner, ast.ImportFrom) and inner.module == name
        for node in guarded
        if ast.unparse(node.test) == "TYPE_CHECKING"
        for inner in node.body
    )


@pytest.mark.parametrize("module", PUBLIC)
def test_public_names_are_pinned(module):
    namespace = importlib.import_module(module)
    assert sorted(namespace.__all__) == sorted(PUBLIC[module].split())
    for name in namespace.__all__:
        if module == "bifactor.extend":
            continue  # documented where they come from
        assert inspect.getdoc(getattr(namespace, name)), f"{module}.{name} has no docstring"


@pytest.mark.parametrize("path", MODULES + REPRODUCE, ids=lambda p: "/".join(p.parts[-3:]))
def test_functions_are_short(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef):
            documented = ast.get_docstring(node) is not None
            first = node.body[1] if documented and len(node.body) > 1 else node.body[0]
            length = node.end_lineno - first.lineno + 1
            assert length <= (20 if node.name == "step" else 40), f"{node.name} has {length} lines"


def test_a_class_name_exists_once():
    places: dict[str, list[str]] = {}
    for path in MODULES:
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef):
                places.setdefault(node.name, []).append(str(path.relative_to(SOURCE)))
    assert {name: where for name, where in places.items() if len(where) > 1} == {}


def test_only_the_command_line_prints():
    for path in MODULES:
        if room_of(path) != "cli":
            calls = [n for n in ast.walk(ast.parse(path.read_text())) if isinstance(n, ast.Call)]
            assert not any(isinstance(c.func, ast.Name) and c.func.id == "print" for c in calls), path


def test_array_api_compat_has_one_importer():
    importers = [p.name for p in MODULES if "array_api_compat" in p.read_text()]
    assert importers == ["backends.py"]


def test_properties_are_cached_without_a_lock():
    """See `bifactor._compat`."""
    assert [str(p) for p in MODULES + REPRODUCE if re.search(r"functools.*\bcached_property", p.read_text())] == [
        str(SOURCE / "_compat.py")
    ]


@pytest.mark.parametrize(
    "word", [r"\.extra\b", r"\bpsd\b", r"\bV is U\b", r"\bwaiting\b", r"\bkind (==|is) (Free|Symmetric|Fixed)"]
)
def test_flags_that_types_have_replaced_stay_away(word):
    found = [str(p.relative_to(SOURCE)) for p in MODULES if re.search(word, p.read_text())]
    assert found == []


def test_no_solver_asks_for_the_kind_of_its_factors():
    """What a solver requires is refused in `requirements`, and a table of constants is looked up by type."""
    for path in MODULES:
        if room_of(path) in ("solvers", "steps", "inits") and path.name != "requirements.py":
            assert not re.search(r"isinstance\([^)]*kind", path.read_text()), path


def test_every_error_has_the_same_root():
    for name, error in vars(bf.errors).items():
        if inspect.isclass(error):
            assert issubclass(error, bf.errors.BifactorError), name


def defined_names() -> set[str]:
    """Modules, functions, classes, arguments, attributes, imports and quoted words of the library."""
    found: set[str] = set()
    for path in MODULES:
        text = path.read_text(encoding="utf-8")
        found |= {path.stem, *path.parts} | set(re.findall(r"[\"'](\w+)[\"']", text))
        for node in ast.walk(ast.parse(text)):
            found |= {getattr(node, field) for field in ("id", "attr", "arg", "name") if hasattr(node, field)}
            if isinstance(node, ast.Import | ast.ImportFrom):
                found |= {part for alias in node.names for part in alias.name.split(".")}
    return found


OF_OTHERS = {"cached_property", "contextvars", "functools", "logging", "numpy", "roots", "scipy", "set_output"}
OF_OTHERS |= {"ContextVar", "sparse", "save_npz", "sha256sum", "china", "jpg", "offset_alpha"}
"""Names of other libraries, of files, and of earlier formats."""


def test_names_in_backticks_exist():
    """A name that was changed is changed where it is mentioned, too."""
    known, gone = defined_names() | OF_OTHERS, []
    for path in MODULES:
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            for name in re.findall(r"`([A-Za-z_][\w.]*)(?:\(\))?`", line):
                if not set(name.split(".")) <= known:
                    gone.append(f"{path.name}:{number}: {name}")
    assert gone == []
