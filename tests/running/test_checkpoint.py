"""A run that is killed and resumed is the run that was never interrupted."""

import json
import os
import subprocess
import sys
import textwrap
import warnings
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

import numpy as np
import pytest

import bifactor as bf
from bifactor.errors import FileError, InputError
from bifactor.factors import Factors
from bifactor.penalties import balance
from bifactor.problems.state import State, Value
from bifactor.running import files
from bifactor.running.checkpoint import pack_value, unpack_value
from bifactor.solvers import Solver


def same(a, b):
    assert a.n_iter == b.n_iter
    assert a.objective == b.objective
    assert a.status is b.status
    np.testing.assert_array_equal(a.U, b.U)
    np.testing.assert_array_equal(a.V, b.V)
    for name in ("objective", "gradient_norm", "relative_change"):
        np.testing.assert_array_equal(getattr(a.history, name), getattr(b.history, name))


SOLVERS = [
    bf.solvers.BFGD(),
    bf.solvers.BFGD(bf.steps.Backtracking()),
    bf.solvers.BFGD(bf.steps.Smooth(every_step=True), balance=None),
    bf.solvers.FGD(),
]


@pytest.mark.parametrize("solver", SOLVERS, ids=lambda s: f"{type(s).__name__}-{type(s.step_size).__name__}")
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex128])
def test_resuming_is_bit_for_bit(make_problem, tmp_path, solver, dtype):
    problem = make_problem(20, 20, dtype=dtype, symmetric=isinstance(solver, bf.solvers.FGD))
    path = tmp_path / "run"
    whole = bf.solve(problem, 2, solver, rng=0, max_iter=40, tol=0)
    first = bf.solve(problem, 2, solver, rng=0, max_iter=13, tol=0, checkpoint=path)
    assert first.n_iter == 13
    rest = bf.solve(problem, 2, solver, rng=0, max_iter=40, tol=0, checkpoint=path)
    same(whole, rest)
    assert rest.history.seconds[20] >= rest.history.seconds[13]


def test_factors_that_were_one_object_are_one_again(make_problem):
    """A run tells by identity whether Gram matrices are known; computed again, they may differ in the last bit."""
    problem = make_problem()
    x = problem.at(problem.zero(2)).x
    arrays = {}
    tree = json.loads(json.dumps(pack_value((x, (x, 2.0 * x)), arrays, {})))
    first, (second, other) = unpack_value(tree, arrays, problem.kind)
    assert first is second
    assert other is not first


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("noise", ["one", "both"])
def test_a_posterior_of_blocks_resumes_bit_for_bit(tmp_path, dtype, noise):
    """The gradient of its longer side has the precision of the blocks, that of the shorter one is in double."""
    rng = np.random.default_rng(0)
    triples = rng.integers(0, 60, 500), rng.integers(0, 20, 500), rng.standard_normal(500)
    store = bf.data.partition(triples, tmp_path / "blocks", dtype=dtype)
    problem = bf.Objective(bf.operators.Partitioned("squared", store), offsets=True)
    options = {"rank": 2, "solver": bf.solvers.Variational(noise, tol=0), "rng": 0, "tol": 0}
    whole = bf.solve(problem, **options, max_iter=9)
    assert whole.U.dtype == dtype
    for iterations in (0, 1, 5, 9):
        parts = bf.solve(problem, **options, max_iter=iterations, checkpoint=tmp_path / "run", checkpoint_every=1)
        assert parts.n_iter == iterations
    same(whole, parts)


def test_a_finished_run_stays_finished(make_problem, tmp_path):
    path = tmp_path / "run"
    first = bf.solve(make_problem(), 2, rng=0, tol=1e-3, checkpoint=path)
    again = bf.solve(make_problem(), 2, rng=0, tol=1e-3, checkpoint=path)
    assert first.status is bf.Status.CONVERGED
    same(first, again)


SCRIPT = textwrap.dedent(
    """
    import os, signal, sys
    import numpy as np
    import bifactor as bf

    rng = np.random.default_rng(7)
    U, V = rng.standard_normal((90, 3)), rng.standard_normal((60, 3))
    rows, cols = np.nonzero(rng.random((90, 60)) < 0.4)
    y = (U @ V.T)[rows, cols] + 0.1 * rng.standard_normal(rows.size)
    problem = bf.Problem(bf.losses.Huber(0.5), bf.operators.Entries(rows, cols, (90, 60)), y)

    def run(kill_at, every, path):
        def callback(t, state):
            if t == kill_at:
                os.kill(os.getpid(), signal.SIGKILL)
        return bf.solve(problem, 3, rng=0, max_iter=30, tol=0, callback=callback, checkpoint=path,
                        checkpoint_every=every)

    folder = sys.argv[1]
    for k in range(8):
        kill_at, every = int(rng.integers(1, 30)), int(rng.integers(1, 9))
        path = os.path.join(folder, f"run{k}")
        child = os.fork()
        if child == 0:
            run(kill_at, every, path)
            os._exit(1)  # not reached: the child is killed
        _, status = os.waitpid(child, 0)
        assert os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL, status
        assert os.path.exists(path) == (kill_at > every), (kill_at, every)
        child = os.fork()
        if child == 0:
            run(None, every, path).save(path + ".result")
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
    run(None, 1000, None).save(os.path.join(folder, "whole.result"))
    """
)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_kills_at_random(tmp_path):
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", SCRIPT, str(tmp_path)], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    whole = bf.Result.load(tmp_path / "whole.result")
    results = sorted(tmp_path.glob("run*.result"))
    assert len(results) == 8
    for path in results:
        same(whole, bf.Result.load(path))


def test_another_run_is_refused_and_the_file_kept(make_problem, tmp_path):
    path = tmp_path / "run"
    bf.solve(make_problem(), 2, rng=0, max_iter=5, checkpoint=path)
    before = path.read_bytes()
    for problem, rank, solver in (
        (make_problem(seed=1), 2, None),
        (make_problem(), 3, None),
        (make_problem(), 2, bf.solvers.BFGD()),
        (make_problem(weights=2.0), 2, None),
        (make_problem(loss=bf.losses.Huber()), 2, None),
    ):
        with pytest.raises(FileError, match="another problem, rank, solver, init or seed"):
            bf.solve(problem, rank, solver, rng=0, checkpoint=path)
    for options in ({"rng": 1}, {"rng": np.random.default_rng(1)}, {"rng": 0, "init": bf.inits.Random()}):
        with pytest.raises(FileError, match="another problem, rank, solver, init or seed"):
            bf.solve(make_problem(), 2, checkpoint=path, **options)
    assert path.read_bytes() == before


def test_a_damaged_checkpoint_is_refused_and_kept(make_problem, tmp_path):
    path = tmp_path / "run"
    bf.solve(make_problem(), 2, rng=0, max_iter=5, checkpoint=path)
    path.write_bytes(path.read_bytes()[:-10])
    before = path.read_bytes()
    with pytest.raises(FileError, match="Cannot read"):
        bf.solve(make_problem(), 2, rng=0, checkpoint=path)
    assert path.read_bytes() == before


def test_callables_in_settings_are_known_by_name(make_problem, tmp_path):
    g = balance.Elementwise(np.square, lambda d: 2 * d, 2.0, 2.0)
    solver = bf.solvers.BFGD(bf.steps.Backtracking(), g)
    for iterations in (3, 6):
        result = bf.solve(make_problem(), 2, solver, rng=0, max_iter=iterations, tol=0, checkpoint=tmp_path / "run")
    assert result.n_iter == 6
    f = bf.Function(lambda X: 0.5 * np.sum((X - 1) ** 2), lambda X: X - 1, (4, 4))
    for iterations in (1, 2):
        result = bf.solve(f, 1, bf.solvers.BFGD(), rng=0, max_iter=iterations, tol=0, checkpoint=tmp_path / "other")
    assert result.n_iter == 2


@dataclass(frozen=True)
class Speed(Value):
    """How fast the factors move, and things of every type that a state may hold."""

    d: Factors
    label: str | None
    numbers: tuple[float, ...]
    where: np.ndarray


class Momentum(Solver[Speed]):
    def init(self, problem, x, rank):
        return State(problem.at(x), Speed(0.0 * x, None, (), np.arange(3)))

    def step(self, problem, state):
        d = 0.5 * state.own.d - 1e-3 * state.point.gradient
        point = problem.at(state.point.x + d)
        return State(point, Speed(d, "moving", (*state.own.numbers, point.value)[-3:], state.own.where + 1))


def test_what_a_solver_carries_is_kept(make_problem, tmp_path):
    whole = bf.solve(make_problem(), 2, Momentum(), rng=0, max_iter=20, tol=0)
    for iterations in (9, 20):
        parts = bf.solve(make_problem(), 2, Momentum(), rng=0, max_iter=iterations, tol=0, checkpoint=tmp_path / "run")
    same(whole, parts)


def test_a_state_comes_back_as_it_was(make_problem):
    problem = make_problem()
    state = Momentum().init(problem, problem.zero(2), 2)
    arrays = {}
    again = unpack_value(json.loads(json.dumps(pack_value(state, arrays, {}))), arrays, problem.kind)
    assert again.own.label is None
    assert again.own.numbers == ()
    assert again.phase == state.phase
    assert again.point.gradient.kind is problem.kind
    # Where a solver adds no terms there is one gradient, which is kept once.
    assert again.point.gradient.left is again.point.original[1].left
    assert len(arrays) == 7  # U and V, their gradient, the speed, and where


def test_states_of_the_library_have_keys_that_do_not_name_modules():
    own = {key: cls for key, cls in Value.classes.items() if cls.__module__.startswith("bifactor.")}
    assert len(own) > 40
    assert not [key for key, cls in own.items() if key.startswith("bifactor") or cls.key != key]


def test_a_key_belongs_to_one_class():
    with pytest.raises(InputError, match=r"The key 'pcg' is that of bifactor\..*Conjugate\. Choose another\."):

        class Other(Value, key="pcg"):
            """Takes the key of a solver."""

    def make():
        @dataclass(frozen=True)
        class Again(Value, key="again"):
            """Defined twice, as in a notebook."""

        return Again

    make()
    again = make()
    assert Value.classes["again"] is again


def test_matrices_keep_their_order(make_problem):
    """BLAS adds in another order along columns, and a run that is resumed has to have the same last bit."""
    matrix, arrays = np.arange(6.0).reshape(2, 3), {}
    given = (matrix, np.asfortranarray(matrix), np.arange(3.0), np.asfortranarray(matrix * 1j))
    tree = json.loads(json.dumps(pack_value(given, arrays, {})))
    again = unpack_value(tree, {name: np.ascontiguousarray(a) for name, a in arrays.items()}, make_problem().kind)
    for before, after in zip(given, again, strict=True):
        assert np.array_equal(before, after)
        assert before.strides == after.strides


def test_what_no_file_can_hold_is_named(make_problem):
    problem = make_problem()
    state = State(problem.at(problem.zero(2)), Speed(problem.zero(2), None, (), {1, 2}))
    with pytest.raises(InputError, match="holds a set"):
        pack_value(state, {}, {})


def test_a_checkpoint_of_the_first_format_is_refused_in_a_sentence(make_problem, tmp_path):
    path = tmp_path / "run"
    files.write(path, "checkpoint", {"U": np.ones((2, 1))}, {"fingerprint": "", "stalled": None})
    before = path.read_bytes()
    with pytest.raises(FileError, match=r"another version of bifactor\. Delete it"):
        bf.solve(make_problem(), 2, rng=0, checkpoint=path)
    assert path.read_bytes() == before


def test_a_failed_write_costs_the_copy_and_not_the_run(make_problem, tmp_path, monkeypatch):
    def full_disk(*arguments):
        raise FileError("Cannot write: No space left on device.")

    monkeypatch.setattr(files, "write", full_disk)
    with pytest.warns(UserWarning, match="not in the checkpoint"):
        result = bf.solve(make_problem(), 2, rng=0, max_iter=7, tol=0, checkpoint=tmp_path / "run", checkpoint_every=5)
    assert result.n_iter == 7


FAILURES = {
    "a full disk": OSError(28, "No space left on device"),
    "no memory": MemoryError("no room for a copy"),
    "a state that no file can hold": InputError("A state holds a set."),
    "anything else": TypeError("Object of type set is not JSON serializable"),
}


@pytest.mark.parametrize("failure", FAILURES)
def test_a_run_that_cannot_be_kept_warns_once(make_problem, tmp_path, monkeypatch, failure):
    def fail(*arguments, **options):
        raise FAILURES[failure]

    problem, options = make_problem(), {"rng": 0, "max_iter": 7, "tol": 0}
    wanted = bf.solve(problem, 2, **options)
    monkeypatch.setattr(files, "to_parts", fail)
    with pytest.warns(UserWarning, match="Iteration 1 is not in the checkpoint") as caught:
        result = bf.solve(problem, 2, **options, checkpoint=tmp_path / "run", checkpoint_every=1)
    assert len(caught) == 1
    np.testing.assert_array_equal(result.U, wanted.U)


@pytest.mark.parametrize("became", ["a file", "nothing", "a folder in its place"])
def test_a_folder_that_changes_in_the_run_costs_the_copies_only(make_problem, tmp_path, became):
    """Also where warnings are errors, which must not take the answer away: then the sentence is shown."""
    folder = tmp_path / "folder"
    folder.mkdir()

    def spoil(iteration, state):
        if iteration == 3:
            for file in folder.iterdir():
                file.unlink()
            folder.rmdir()
            if became == "a file":
                folder.write_text("mine")
            elif became == "a folder in its place":
                (folder / "run").mkdir(parents=True)

    with warnings.catch_warnings(record=True) as shown:
        warnings.simplefilter("error")
        path = folder / "run"
        result = bf.solve(
            make_problem(), 2, rng=0, max_iter=8, tol=0, callback=spoil, checkpoint=path, checkpoint_every=2
        )
    assert result.n_iter == 8
    (told,) = shown
    assert str(told.message).startswith("Iteration 4 is not in the checkpoint, and later ones may not be. Cannot write")
    assert became != "a file" or folder.read_text() == "mine"


def test_another_function_of_the_same_name_is_refused(tmp_path):
    def make(target):
        return bf.Function(lambda X: 0.5 * np.sum((X - target) ** 2), lambda X: X - target, (4, 4))

    bf.solve(make(1.0), 1, rng=0, max_iter=2, checkpoint=tmp_path / "run")
    with pytest.raises(FileError, match="another problem"):
        bf.solve(make(2.0), 1, rng=0, max_iter=2, checkpoint=tmp_path / "run")


def test_losses_without_a_repr_are_known_by_their_settings(tmp_path):
    class Plain(bf.losses.Squared):
        __repr__ = object.__repr__

        def __init__(self, level):
            object.__setattr__(self, "level", level)

    op = bf.operators.Full((4, 4))
    for iterations in (1, 2):
        problem = bf.Problem(Plain(3), op, np.eye(4))
        result = bf.solve(problem, 1, bf.solvers.BFGD(), rng=0, max_iter=iterations, tol=0, checkpoint=tmp_path / "run")
    assert result.n_iter == 2


def test_settings_made_of_numpy_scalars_and_partials(make_problem, tmp_path):
    g = balance.Elementwise(partial(np.multiply, 1.0), partial(np.multiply, 2.0), np.float32(2), np.float64(2))
    for solver in (
        bf.solvers.BFGD(bf.steps.Constant(np.float32(1e-3))),
        bf.solvers.BFGD(bf.steps.Backtracking(shrink=np.float64(0.5)), g, lam=np.float64(0.25)),
    ):
        path = tmp_path / type(solver.step_size).__name__
        result = bf.solve(make_problem(dtype=np.float32), 2, solver, rng=0, max_iter=3, tol=0, checkpoint=path)
        assert result.U.dtype == np.float32


def test_threads_that_share_a_file_do_not_trip_over_each_other(make_problem, tmp_path):
    def run(_):
        return bf.solve(make_problem(), 2, rng=0, max_iter=15, tol=0, checkpoint=tmp_path / "run", checkpoint_every=1)

    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(run, range(4)))
    for result in results:
        assert result.n_iter == 15
    assert [p.name for p in tmp_path.iterdir()] == ["run"]


def test_interrupted_run_resumes(make_problem, tmp_path):
    path = tmp_path / "run"

    def press_ctrl_c(t, state):
        if t == 7:
            raise KeyboardInterrupt

    options = {"rng": 0, "max_iter": 20, "tol": 0, "checkpoint": path, "checkpoint_every": 3}
    bf.solve(make_problem(), 2, callback=press_ctrl_c, **options)
    assert files.read(path, "checkpoint")[0]["records"].shape == (4, 8)  # all seven iterations are kept
    same(bf.solve(make_problem(), 2, **options), bf.solve(make_problem(), 2, rng=0, max_iter=20, tol=0))


def changed(tree, path, value):
    """A tree with another value at a path of keys."""
    key, *rest = path
    new = changed(tree[key], rest, value) if rest else value
    return {**tree, key: new} if isinstance(tree, dict) else [*tree[:key], new, *tree[key + 1 :]]


POINT = ("state", "parts", "point")
TREES = {
    "no state": (("state",), None),
    "a number for a state": (("state",), 7),
    "another value for a state": (("state",), {"value": "bifactor.problems.state.Nothing", "parts": {}}),
    "an unknown value": (("state", "value"), "os.system"),
    "no parts": (("state", "parts"), None),
    "no phase": (("state", "parts", "phase"), None),
    "a point for a phase": (("state", "parts", "phase"), {"value": "bifactor.problems.state.Nothing", "parts": {}}),
    "nothing of its own": (("state", "parts", "own"), None),
    "another part": (("state", "parts"), {"x": 1}),
    "a list for a point": (POINT, []),
    "an unknown array": ((*POINT, "parts", "x", "factors", 0), {"array": "none"}),
    "one factor": ((*POINT, "parts", "x", "factors"), [{"array": "array1"}]),
    "no factors": ((*POINT, "parts", "x"), None),
    "factors of nothing": ((*POINT, "parts", "x"), {"factors": [None, None]}),
    "factors of another shape": ((*POINT, "parts", "x", "factors", 0), {"array": "records"}),
    "f in words": ((*POINT, "parts", "f"), "small"),
    "a value of NaN": ((*POINT, "parts", "value"), float("nan")),
    "a value that is a list": ((*POINT, "parts", "value"), []),
    "no best": (("best",), None),
    "a best value of NaN": (("best_value",), float("nan")),
    "a best value in words": (("best_value",), "low"),
    "no magnitude": (("magnitude",), None),
}
RECORDS = {
    "none": lambda records: None,
    "a vector": lambda records: records[0],
    "a row too few": lambda records: records[:-1],
    "no iterations": lambda records: records[:, :0],
    "NaN": lambda records: records * np.nan,
    "integers": lambda records: records.astype(np.int64),
}


@pytest.mark.parametrize("change", [*TREES, *RECORDS])
def test_a_checkpoint_that_somebody_changed_is_refused_in_a_sentence(make_problem, tmp_path, change):
    path = tmp_path / "run"
    bf.solve(make_problem(), 2, bf.solvers.PCG(), rng=0, max_iter=5, checkpoint=path)
    arrays, metadata = files.read(path, "checkpoint")
    if change in TREES:
        metadata = changed(metadata, *TREES[change])
    else:
        records = RECORDS[change](arrays.pop("records"))
        arrays |= {} if records is None else {"records": records}
    files.write(path, "checkpoint", arrays, metadata)
    before = path.read_bytes()
    with pytest.raises(FileError, match=r"run is damaged, or was written by another version .*Delete it") as caught:
        bf.solve(make_problem(), 2, bf.solvers.PCG(), rng=0, max_iter=5, checkpoint=path)
    assert "\n" not in str(caught.value)
    assert path.read_bytes() == before


def test_a_bit_that_flips_is_noticed_or_does_no_harm(make_problem, tmp_path):
    """Some bits say nothing of the run, such as those of the number of the format."""
    path, harmless = tmp_path / "run", 0
    first = bf.solve(make_problem(), 2, rng=0, max_iter=5, checkpoint=path)
    whole = path.read_bytes()
    rng = np.random.default_rng(0)
    for at in rng.integers(len(whole), size=60).tolist():
        path.write_bytes(whole[:at] + bytes([whole[at] ^ (1 << int(rng.integers(8)))]) + whole[at + 1 :])
        try:
            same(bf.solve(make_problem(), 2, rng=0, max_iter=5, checkpoint=path), first)
            harmless += 1
        except FileError as error:
            assert "\n" not in str(error)  # noqa: PT017
    assert harmless <= 6
