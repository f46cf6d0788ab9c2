"""What a run takes of memory is told before: close to what is measured, for every solver and operator, at no cost."""

import inspect
import json
import subprocess
import sys
import tracemalloc
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.running.peaks import OPERATORS, SOLVERS

import bifactor as bf
from bifactor.data.observations import Observations
from bifactor.errors import InputError
from bifactor.extend import Nothing, State, run_memory
from bifactor.models.completion.fitting import CompletionSettings, fit_model
from bifactor.running import memory
from bifactor.running.memory import Memory, available_memory, bytes_in_words, entries_memory, require_memory
from bifactor.solvers import Variational

resource = pytest.importorskip("resource", reason="Windows has none")

GB = 10**9


@pytest.fixture(scope="module")
def peaks():
    script = Path(__file__).with_name("peaks.py")
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("which", ["solvers", "operators"])
def test_what_is_told_is_close_to_what_is_measured(peaks, which):
    found = peaks[which]
    assert found
    off = {name: told / peak for name, (peak, told) in found.items() if not 0.8 <= told / peak <= 2.0}
    assert off == {}


@pytest.mark.parametrize(("room", "measured"), [(bf.solvers, SOLVERS), (bf.operators, OPERATORS)])
def test_every_solver_and_operator_is_measured(room, measured):
    kind = bf.solvers.Solver if room is bf.solvers else bf.operators.Operator
    things = (getattr(room, name) for name in room.__all__)
    classes = (one for one in things if inspect.isclass(one))
    concrete = {one.__name__ for one in classes if issubclass(one, kind) and not inspect.isabstract(one)}
    assert {name.partition(",")[0] for name in measured} == concrete


def test_it_costs_nothing(make_problem):
    problem = make_problem(900, 700, observed=0.4)
    problem.memory(3)
    tracemalloc.start()
    first, second = problem.memory(200), problem.memory(200)
    assert tracemalloc.get_traced_memory()[1] < problem.y.nbytes / 20
    tracemalloc.stop()
    assert first == second
    bf.solve(problem, 3, max_iter=2)
    assert problem.memory(200) == first  # what a run caches is not counted as data


def test_data_is_what_the_problem_holds():
    rng = np.random.default_rng(0)
    rows, cols = rng.integers(30, size=300), rng.integers(20, size=300)
    y, weights = rng.standard_normal(300), np.ones(300)
    operator = bf.operators.Entries(rows, cols, (30, 20))
    coordinates = 2 * 4 * 300  # the kernels take them as int32
    plain = bf.Problem(bf.losses.Squared(), operator, y)
    small = plain.f.operator.layout.tiles.nbytes
    assert plain.memory(2).data == coordinates + y.nbytes + small
    weighted = bf.Problem(bf.losses.Squared(), operator, y, weights)
    assert weighted.memory(2).data == coordinates + y.nbytes + weights.nbytes + small
    single = bf.Problem(bf.losses.Squared(), operator, y.astype(np.float32))
    assert single.memory(2).data == coordinates + y.nbytes // 2 + small
    both = plain + weighted
    assert both.memory(2).data == coordinates + 2 * y.nbytes + weights.nbytes + small  # of one operator
    held = bf.Problem(bf.losses.Squared(), bf.operators.Gaussian((30, 20), 50, 0), y[:50])
    assert held.memory(2).data >= 8 * 50 * 600


def test_it_grows_with_all_that_a_run_depends_on(make_problem):
    problem, symmetric = make_problem(300, 300), make_problem(300, 300, symmetric=True)
    for solver in (None, bf.solvers.PCG(), bf.solvers.Newton(), bf.solvers.SVP()):
        runs = [problem.memory(rank, solver).run for rank in (1, 2, 10, 100)]
        assert runs == sorted(runs)
        assert runs[-1] > 2 * runs[0]
    assert symmetric.memory(50, bf.solvers.PCG()).run < problem.memory(50, bf.solvers.PCG()).run
    single = make_problem(300, 300, dtype=np.float32)
    assert single.memory(50).run < 0.7 * problem.memory(50).run
    lean = bf.Problem(problem.loss, bf.operators.Recomputed(problem.operator), problem.y)
    assert lean.memory(1).run < problem.memory(1).run
    offsets = bf.Problem(problem.loss, problem.operator, problem.y, offsets=True)
    assert offsets.memory(5, bf.solvers.PCG()).run > problem.memory(5, bf.solvers.PCG()).run


def test_the_default_is_what_solve_takes(make_problem):
    scarce, plenty = make_problem(60, 50, observed=0.3), make_problem(60, 50, observed=0.9)
    assert scarce.memory(9) == scarce.memory(9, bf.solvers.Race())
    assert plenty.memory(2) == plenty.memory(2, bf.solvers.RankContinuation())
    ridge = make_problem(60, 50, penalty=bf.penalties.Ridge(1.0))
    assert ridge.memory(2) == ridge.memory(2, bf.solvers.PCG())


def test_wrappers_ask_the_solver_inside(make_problem):
    problem = make_problem(200, 100)
    S = bf.solvers
    for wrap in (S.RankContinuation, S.RidgeHomotopy, lambda inner: S.Race((inner,)), S.Refitted):
        light, heavy = (problem.memory(20, wrap(inner)).run for inner in (S.PCG(), S.Newton()))
        assert heavy - light == problem.memory(20, S.Newton()).run - problem.memory(20, S.PCG()).run > 0


class Own(bf.operators.Operator):
    """Row sums, without a word on memory."""

    def __init__(self, shape):
        self.shape, self.size = shape, shape[0]

    def forward(self, U, V):
        return U @ V.sum(axis=0)

    def adjoint(self, w):
        return bf.extend.Dense(np.multiply.outer(w, np.ones(self.shape[1])))

    def norm_squared(self, weights=None):
        return float(self.shape[1])

    def mean_square(self, weights=None):
        return 1.0


class Still(bf.solvers.Solver):
    """Stays where it is."""

    def init(self, problem, x, rank):
        return State(problem.at(x), Nothing())

    def step(self, problem, state):
        return state


class Thrifty(Still):
    def peak(self, problem, rank):
        return run_memory(problem, rank, pairs=3, lengths=2)


def test_a_users_own_operator_and_solver_have_an_answer():
    rng = np.random.default_rng(0)
    problem = bf.Problem(bf.losses.Squared(), Own((400, 300)), rng.standard_normal(400))
    told = problem.memory(5, Still())
    assert told.data >= problem.y.nbytes
    assert 15 * 8 * 5 * 700 <= told.run <= 40 * 8 * 5 * 700 + 8 * 400 * 300
    assert Thrifty().peak(problem, 5) < Still().peak(problem, 5)
    own = bf.Objective(bf.Function(lambda X: float(np.sum(X**2)), lambda X: 2 * X, (400, 300)))
    assert own.memory(5).run >= 8 * 8 * 400 * 300
    assert (problem + own.f).memory(5).run > problem.memory(5).run


@pytest.mark.parametrize("rank", [0, -1, 21, 2.5, True, None, "three"])
def test_ranks_that_are_not_possible(make_problem, rank):
    with pytest.raises(InputError, match=r"not possible for a 30×20 matrix. Choose an integer from 1 to 20\."):
        make_problem().memory(rank)


def test_other_mistakes(make_problem):
    with pytest.raises(InputError, match=r"rank='auto' is chosen in the run.* Pass the largest rank"):
        make_problem().memory("auto")
    with pytest.raises(InputError, match=r"solver is <class .*PCG"):
        make_problem().memory(2, bf.solvers.PCG)
    for bad in ((0, 5, 3), ((9, 9), 0, 3), ((9, 9), 5, -1), ((9, 9), 5, "auto"), ((9, 9), 2.5, 3)):
        shape, entries, rank = bad if isinstance(bad[0], tuple) else ((bad[0], 9), *bad[1:])
        with pytest.raises(InputError):
            entries_memory(shape, entries, rank)


def test_in_words():
    assert str(Memory(1_200_000_000, 700_000_000)) == "1.9 GB: 1.2 GB for the data, 700 MB for the run"
    assert Memory(3, 4).total == 7
    words = {0: "0 kB", 640: "1 kB", 94_000: "94 kB", 2_340_000: "2.3 MB", 999e6: "1.0 GB", 21.4e9: "21 GB"}
    assert {size: bytes_in_words(size) for size in words} == words
    assert bytes_in_words(12_345e9) == "12,345 GB"


@pytest.mark.parametrize("solver", [None, Variational("one"), Variational("student")], ids=["ridge", "one", "student"])
@pytest.mark.parametrize(("rank", "dtype"), [(3, np.float64), (20, np.float32)])
def test_entries_memory_is_that_of_a_fit(rank, dtype, solver):
    m, n, count = 750, 1_250, 60_000
    rng = np.random.default_rng(0)
    rows, cols = rng.integers(m, size=count), rng.integers(n, size=count)
    data = Observations(rows, cols, rng.standard_normal(count).astype(dtype), (m, n))
    settings = CompletionSettings(bf.losses.Squared(), rank, None, solver is not None, None, True, solver, 4, 1e-5, 0)
    fit_model(data, replace(settings, max_iter=1))  # what is imported and compiled on first use is not the fit's
    tracemalloc.start()
    fit_model(data, settings)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert 0.8 * peak <= entries_memory((m, n), count, rank, dtype, solver) <= 2 * peak


def test_entries_memory_forms_nothing():
    tracemalloc.start()
    needed = entries_memory((100_000, 50_000), 2 * 10**9, 40)
    assert tracemalloc.get_traced_memory()[1] < 10**7
    tracemalloc.stop()
    assert 100 * GB < needed < 300 * GB
    assert entries_memory((100_000, 50_000), 2 * 10**9, 40, np.float32) < needed
    assert entries_memory((10, 8), 50, 40) == entries_memory((10, 8), 50, 8)


@pytest.fixture
def system(tmp_path, monkeypatch):
    """Writes files of a system of one's own."""
    monkeypatch.setattr(memory, "ROOT", tmp_path)
    monkeypatch.setattr(resource, "getrlimit", lambda what: (resource.RLIM_INFINITY,) * 2)

    def write(**files):
        for name, text in files.items():
            path = tmp_path / name.replace("__", "/").replace("_dot_", ".")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

    return write


def test_nothing_is_known_where_the_system_does_not_tell(system):
    assert available_memory() is None
    require_memory(10**18)


def test_memory_of_the_machine(system):
    system(proc__meminfo="MemTotal:       32000000 kB\nMemFree: 1 kB\nMemAvailable:    2000000 kB\n")
    assert available_memory() == 2_000_000 * 1024


def test_memory_of_control_groups(system):
    system(
        proc__meminfo="MemAvailable: 900000000 kB\n",
        proc__self__cgroup="0::/outer/inner\n",
        sys__fs__cgroup__outer__inner__memory_dot_max="max\n",
        sys__fs__cgroup__outer__inner__memory_dot_current="1000\n",
        sys__fs__cgroup__outer__memory_dot_max=f"{8 * GB}\n",
        sys__fs__cgroup__outer__memory_dot_current=f"{5 * GB}\n",
        sys__fs__cgroup__outer__memory_dot_stat=f"anon 5\nfile 7\ninactive_file {GB}\nactive_file 3\n",
    )
    assert available_memory() == 4 * GB


def test_memory_of_control_groups_of_the_first_kind(system):
    system(
        proc__meminfo="MemAvailable: 900000000 kB\n",
        proc__self__cgroup="9:cpu:/job\n4:hugetlb,memory:/job\n1:name=systemd:/\n",
        sys__fs__cgroup__memory__memory_dot_limit_in_bytes="9223372036854771712\n",
        sys__fs__cgroup__memory__memory_dot_usage_in_bytes="7\n",
        sys__fs__cgroup__memory__job__memory_dot_limit_in_bytes=f"{3 * GB}\n",
        sys__fs__cgroup__memory__job__memory_dot_usage_in_bytes=f"{4 * GB}\n",
    )
    assert available_memory() == 0  # more than the limit


def test_memory_of_the_process(system, monkeypatch):
    monkeypatch.setattr(resource, "getrlimit", lambda what: (2 * GB, 3 * GB))
    system(proc__meminfo="MemAvailable: 900000000 kB\n", proc__self__statm="1000 200 30 4 0 50 0\n")
    assert available_memory() == 2 * GB - 1000 * resource.getpagesize()


def test_too_little_memory_is_refused_in_a_sentence(system):
    system(proc__meminfo=f"MemAvailable: {15 * GB // 1024} kB\n")
    require_memory(14 * GB)
    with pytest.raises(InputError) as error:
        require_memory(21 * GB)
    told = "This fit needs about 21 GB, but only 15 GB are free. Use fewer entries, a smaller rank or float32."
    assert str(error.value) == told


@pytest.mark.skipif(not Path("/proc/meminfo").exists(), reason="the system does not tell")
def test_memory_of_this_machine():
    free = available_memory()
    assert free is not None
    assert 10**7 < free < 10**15
