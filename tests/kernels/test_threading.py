"""How many threads are used, that results hardly depend on it, and that children of a fork can fit."""

import contextlib
import multiprocessing
import os
import signal
import subprocess
import sys
import textwrap
import threading
from contextlib import ExitStack

import numpy as np
import pytest
from joblib import Parallel, delayed
from threadpoolctl import threadpool_info, threadpool_limits

import bifactor as bf
from bifactor.errors import InputError
from bifactor.kernels import threading as module
from bifactor.kernels.threading import blas_at_most, thread_count, usable_cores


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch):
    for name in module.VARIABLES:
        monkeypatch.delenv(name, raising=False)
    cores = module.usable_cores  # which tests replace
    module._default.cache_clear()
    cores.cache_clear()
    yield
    module._default.cache_clear()
    cores.cache_clear()


@pytest.fixture
def threads_for_small_work(monkeypatch):
    monkeypatch.setattr(module, "SMALL", 0)


def in_thread(function):
    """What a function returns in a thread of its own."""
    found = []
    thread = threading.Thread(target=lambda: found.append(function()))
    thread.start()
    thread.join()
    return found[0]


def blas_threads():
    return max(library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas")


# How many


def test_the_limit_holds_inside_and_in_this_thread_alone():
    default = thread_count()
    with bf.threads(3):
        assert thread_count() == 3
        assert in_thread(thread_count) == default
        with bf.threads(None):
            assert thread_count() == 3
        with bf.threads(np.int64(1)):
            assert thread_count() == 1
        assert thread_count() == 3
    assert thread_count() == default


def test_an_error_ends_the_limit():
    default = thread_count()
    with contextlib.suppress(KeyError), bf.threads(default + 1):
        raise KeyError
    assert thread_count() == default


def test_all_cores(monkeypatch):
    monkeypatch.setenv("BIFACTOR_NUM_THREADS", "1")
    with bf.threads(-1):
        assert thread_count() == usable_cores()


@pytest.mark.parametrize("n", [0, -2, 1.0, 2.5, float("nan"), "2", True, [2], np.array([2])], ids=repr)
def test_what_is_no_number_of_threads_is_refused_at_once(n):
    with pytest.raises(InputError, match=r"threads=.* is not possible\. Choose an integer ≥ 1, -1 for all cores"):
        bf.threads(n)


def test_each_thread_of_python_may_have_its_own_number():
    together, seen = threading.Barrier(2, timeout=60), {}

    def look(n):
        with bf.threads(n):
            together.wait()
            seen[n] = thread_count(), len(module.shares(100, module.SMALL))
            together.wait()

    others = [threading.Thread(target=look, args=(n,)) for n in (2, 5)]
    for thread in others:
        thread.start()
    for thread in others:
        thread.join()
    assert seen == {2: (2, 2), 5: (5, 5)}


@pytest.mark.parametrize("n", [1, 2, 3])
def test_kernels_use_at_most_so_many(n, threads_for_small_work, monkeypatch):
    sizes, plain = [], module._Workers.offer
    monkeypatch.setattr(
        module._Workers, "offer", lambda self, parts: (sizes.append(1 + len(parts)), plain(self, parts))
    )
    with bf.threads(n):
        for problem in PROBLEMS.values():
            fit(problem, max_iter=2)
    assert max(sizes, default=1) == n


@pytest.mark.parametrize("work", [0, 1, 1.5, 2, 3.9, 4, 5, 1e9])
def test_no_thread_has_a_small_share(work):
    with bf.threads(4):
        count = module.threads_for(work * module.SMALL)
    assert count == max(1, min(4, int(work)))


# The environment


@pytest.mark.parametrize(
    ("environment", "count"),
    [
        ({"BIFACTOR_NUM_THREADS": "3", "NUMBA_NUM_THREADS": "4", "OMP_NUM_THREADS": "5"}, 3),
        ({"NUMBA_NUM_THREADS": "4", "OMP_NUM_THREADS": "5"}, 4),
        ({"OMP_NUM_THREADS": "5"}, 5),
        ({"OMP_NUM_THREADS": "5, 2"}, 5),
        ({"BIFACTOR_NUM_THREADS": "", "NUMBA_NUM_THREADS": " 4 "}, 4),
    ],
    ids=str,
)
def test_the_environment_is_the_default(environment, count, monkeypatch):
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert thread_count() == count
    with bf.threads(2):
        assert thread_count() == 2


@pytest.mark.parametrize("name", module.VARIABLES)
@pytest.mark.parametrize("value", ["0", "-1", "many", "2.0", "4,2 x", "²"])
def test_a_bad_value_in_the_environment_is_named(name, value, monkeypatch):
    if name == "OMP_NUM_THREADS" and value.startswith("4"):
        pytest.skip("OpenMP's lists are not ours to check")
    monkeypatch.setenv(name, value)
    with pytest.raises(InputError, match=f"{name}='{value}'. Set it to an integer ≥ 1, or unset it"):
        thread_count()


def test_the_environment_is_read_when_threads_are_first_needed():
    script = (
        "import os, bifactor.kernels.threading as p; os.environ['BIFACTOR_NUM_THREADS'] = '7'; print(p.thread_count())"
    )
    assert subprocess.run([sys.executable, "-c", script], capture_output=True, text=True).stdout.strip() == "7"


def test_without_a_word_there_is_a_thread_for_each_core(monkeypatch, tmp_path):
    monkeypatch.setattr(module, "CGROUP", tmp_path)
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    assert thread_count() == usable_cores() == allowed


@pytest.mark.parametrize(
    ("files", "cores"),
    [
        ({"cpu.max": "150000 100000\n"}, 2),
        ({"cpu.max": "20000 100000\n"}, 1),
        ({"cpu.max": "max 100000\n"}, 64),
        ({"cpu.max": "nonsense"}, 64),
        ({"cpu/cpu.cfs_quota_us": "300000\n", "cpu/cpu.cfs_period_us": "100000\n"}, 3),
        ({"cpu/cpu.cfs_quota_us": "-1\n", "cpu/cpu.cfs_period_us": "100000\n"}, 64),
        ({}, 64),
    ],
    ids=str,
)
def test_the_quota_of_a_container_counts(files, cores, monkeypatch, tmp_path):
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.setattr(module, "CGROUP", tmp_path)
    if sys.version_info >= (3, 13):
        monkeypatch.setattr(os, "process_cpu_count", lambda: 64)
    elif sys.platform == "linux":
        monkeypatch.setattr(os, "sched_getaffinity", lambda process: range(64))
    else:
        monkeypatch.setattr(os, "cpu_count", lambda: 64)
    assert usable_cores() == cores


# BLAS


@pytest.fixture
def several_blas_threads():
    with threadpool_limits(4, user_api="blas"):
        if blas_threads() < 4:
            pytest.skip("this BLAS has no threads, or keeps their number to itself")
        yield


def test_blas_is_limited_too(several_blas_threads):
    with bf.threads(3):
        assert blas_threads() == 3
        with blas_at_most(1):
            assert blas_threads() == 1
        with bf.threads(8):
            assert blas_threads() == 4
        assert blas_threads() == 3
    assert blas_threads() == 4


def test_blas_is_limited_from_any_thread(several_blas_threads):
    def look():
        with bf.threads(2):
            return blas_threads()

    with blas_at_most(3):  # this thread was first
        assert in_thread(look) == 2
        assert blas_threads() == 3
    assert in_thread(look) == 2
    assert blas_threads() == 4


def test_the_last_to_leave_restores_blas(several_blas_threads):
    inside, leave = threading.Event(), threading.Event()

    def stay():
        with bf.threads(2):
            inside.set()
            leave.wait(60)

    with ExitStack() as stack:
        stack.enter_context(bf.threads(1))
        other = threading.Thread(target=stay)
        other.start()
        inside.wait(60)
        assert blas_threads() == 1
        stack.close()
        assert blas_threads() == 2
        leave.set()
        other.join()
    assert blas_threads() == 4


# Results


def completion(loss, dtype=np.float64):
    rng = np.random.default_rng(0)
    U, V = rng.standard_normal((60, 3)), rng.standard_normal((40, 3))
    rows, cols = np.nonzero(rng.random((60, 40)) < 0.5)
    z = np.einsum("ik,ik->i", U[rows], V[cols])
    y = (np.sign(z) if isinstance(loss, bf.losses.Logistic) else z + 0.1 * rng.standard_normal(z.size)).astype(dtype)
    return bf.Problem(loss, bf.operators.Entries(rows, cols, (60, 40)), y, penalty=bf.penalties.Ridge(0.3))


def sensing(operator):
    rng = np.random.default_rng(1)
    U, V = (rng.standard_normal((n, 2)) for n in operator.shape)
    return bf.Problem(bf.losses.Squared(), operator, operator.forward(U, V))


def tomography():
    U = np.random.default_rng(2).standard_normal((8, 1)) / 8**0.5
    operator = bf.operators.Pauli(3, 40, 0)
    return bf.Problem(bf.losses.Squared(), operator, operator.forward(U, U), symmetric=True)


PROBLEMS = {
    "entries": completion(bf.losses.Squared()),
    "entries, float32": completion(bf.losses.Squared(), np.float32),
    "labels": completion(bf.losses.Logistic()),
    "Gaussian": sensing(bf.operators.Gaussian((12, 10), 90, 0)),
    "Pauli": tomography(),
    "noiselets": sensing(bf.operators.Noiselet((16, 16), 150, 0)),
    "Hadamard": sensing(bf.operators.Hadamard((16, 16), 150, 0)),
    "DCT": sensing(bf.operators.DCT((15, 14), 150, 0)),
    "Fourier": sensing(bf.operators.Fourier((15, 14), 150, 0)),
    "full": sensing(bf.operators.Full((20, 15))),
}
SOLVERS = {
    "PCG": bf.solvers.PCG(),
    "Newton": bf.solvers.Newton(),
    "ScaledGD": bf.solvers.ScaledGD(),
    "BFGD": bf.solvers.BFGD(bf.steps.Backtracking()),
}


def fit(problem, solver=None, max_iter=8):
    rank = 1 if problem.shape == (8, 8) else 2
    return bf.solve(problem, rank, solver or bf.solvers.PCG(), bf.inits.Random(), 0, max_iter=max_iter, tol=0)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("name", PROBLEMS)
def test_results_depend_on_the_number_of_threads_by_rounding(name, solver, threads_for_small_work):
    fits = {}
    for n in (1, 2, 3):
        with bf.threads(n):
            first, second = (fit(PROBLEMS[name], SOLVERS[solver]) for _ in range(2))
        assert np.array_equal(first.U, second.U)
        assert np.array_equal(first.V, second.V)
        assert np.array_equal(first.history.objective, second.history.objective)
        fits[n] = first
    # Rounding is multiplied a few times in eight iterations from one start.
    X, eps = fits[1].matrix(), float(np.finfo(fits[1].U.dtype).eps)
    for n in (2, 3):
        np.testing.assert_allclose(fits[n].matrix(), X, rtol=0, atol=1000 * eps * np.abs(X).max())


def test_new_rows_do_not_depend_on_it_at_all(threads_for_small_work):
    rng = np.random.default_rng(0)
    table = rng.standard_normal((50, 2)) @ rng.standard_normal((2, 30))
    table[rng.random(table.shape) < 0.5] = np.nan
    with bf.threads(1):
        model = bf.MatrixCompletion(n_components=2, ridge=0.1, random_state=0).fit(table)
        alone = model.transform(table)
    with bf.threads(3):
        np.testing.assert_array_equal(model.transform(table), alone)


# The pool


def test_results_come_in_order_and_one_part_is_the_callers():
    with bf.threads(3):
        found = module.run(lambda k: (k, threading.get_ident()), [(k,) for k in range(20)])
    assert [k for k, _ in found] == list(range(20))
    assert found[0][1] == threading.get_ident()


def test_an_error_in_a_part_is_raised_when_nobody_is_at_work_any_more():
    begun, done = threading.Event(), []

    def part(k):
        if k == 0:
            begun.wait(60)
            raise ValueError("first")
        begun.set()
        done.append(k)
        return k

    with pytest.raises(ValueError, match="first"):
        module.run(part, [(0,), (1,)])
    assert done == [1]
    with pytest.raises(ZeroDivisionError):
        module.run(lambda k: 1 // k, [(1,), (0,)])


def test_what_nobody_has_begun_is_not_begun_after_an_error(monkeypatch):
    monkeypatch.setattr(module._workers, "offer", lambda parts: None)
    done = []

    def part(k):
        if k == 0:
            raise KeyError
        done.append(k)

    with pytest.raises(KeyError):
        module.run(part, [(0,), (1,)])
    assert done == []


def test_work_inside_work_does_not_wait_for_itself():
    def outer(k):
        return sum(module.run(lambda a, b: a * b, [(k, j) for j in range(8)]))

    assert module.run(outer, [(k,) for k in range(8)]) == [28 * k for k in range(8)]


def test_without_threads_the_caller_does_it_all(monkeypatch):
    def refuse(thread):
        raise RuntimeError("can't start new thread")

    workers = module._Workers()
    monkeypatch.setattr(module, "_workers", workers)
    monkeypatch.setattr(threading.Thread, "start", refuse)
    assert module.run(lambda k: k + 1, [(k,) for k in range(5)]) == [1, 2, 3, 4, 5]
    assert workers.parts.empty()


def test_there_are_no_more_workers_than_cores_or_parts(monkeypatch):
    workers = module._Workers()
    monkeypatch.setattr(module, "_workers", workers)
    monkeypatch.setattr(module, "usable_cores", lambda: 2)

    def many():
        for _ in range(20):
            module.run(lambda k: k, [(0,), (1,), (2,)])

    callers = [threading.Thread(target=many) for _ in range(6)]
    for thread in callers:
        thread.start()
    for thread in callers:
        thread.join()
    assert workers.started == 2
    module.run(lambda k: k, [(k,) for k in range(6)])
    assert workers.started == 5


def test_errstate_holds_in_all_parts():
    with np.errstate(divide="raise"), pytest.raises(FloatingPointError):
        module.run(lambda x: np.float64(1) / x, [(np.float64(1),), (np.float64(0),)])


def test_parts_let_go_of_their_arguments():
    array = np.zeros(3)
    before = sys.getrefcount(array)
    module.run(lambda a, k: k, [(array, k) for k in range(4)])
    assert sys.getrefcount(array) == before


# Other processes


FORKS = textwrap.dedent(
    """
    import faulthandler, os, random, sys, threading, time, warnings
    warnings.filterwarnings("ignore", "This process .* is multi-threaded", DeprecationWarning)
    import numpy as np
    import bifactor as bf

    mode, forks = sys.argv[1], int(sys.argv[2])
    rng = np.random.default_rng(0)
    rows, cols, y = rng.integers(300, size=20_000), rng.integers(200, size=20_000), rng.standard_normal(20_000)

    def fit():
        problem = bf.Problem(bf.losses.Squared(), bf.operators.Entries(rows, cols, (300, 200)), y)
        return bf.solve(problem, 10, bf.solvers.PCG(), rng=0, max_iter=5).matrix().sum()

    def fit_for_ever():
        while True:
            fit()

    def compile_for_ever():
        from bifactor.kernels.compile import compiled
        while True:
            compiled(eval("lambda x: x + 1"), cache=False)(1)

    if mode != "import":
        fit()
    work = {"fit": fit_for_ever, "import": fit_for_ever, "compile": compile_for_ever}[mode]
    threads = [threading.Thread(target=work, daemon=True) for _ in range(2)]
    for thread in threads:
        thread.start()
    pause, statuses = random.Random(0), []
    for _ in range(forks):
        time.sleep(0.03 * pause.random())
        child = os.fork()
        if child == 0:
            faulthandler.dump_traceback_later(10, exit=True)
            if mode == "compile":
                from bifactor.kernels.compile import compiled
                compiled(lambda x: x + 2, cache=False)(1)
            os._exit(0 if np.isfinite(fit()) else 2)
        statuses.append(os.waitpid(child, 0)[1])
        if any(statuses):
            break
    print(statuses, flush=True)
    os._exit(any(statuses))
    """
)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize(("mode", "forks"), [("fit", 20), ("compile", 3), ("import", 5)])
def test_children_fit_whatever_other_threads_did_at_the_fork(mode, forks):
    """A child that waits for a thread it does not have is ended after 10 s, and says where it waited."""
    done = subprocess.run([sys.executable, "-c", FORKS, mode, str(forks)], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ""


def in_child(look):
    """The small number that a function returns in the child of a fork; 255 where it fails, 1 where it waits."""
    child = os.fork()
    if child == 0:
        found = 255
        signal.alarm(20)
        with contextlib.suppress(BaseException):
            found = look()
        os._exit(found)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def side_by_side():
    """Whether two parts of work meet, which takes two threads."""
    together = threading.Barrier(2, timeout=10)
    module.run(together.wait, [(), ()])
    return 2


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_child_starts_threads_of_its_own():
    assert side_by_side() == 2
    with module._workers.lock:  # as if another thread were about to hand out work
        assert in_child(side_by_side) == 2


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_limits_of_the_forking_thread_alone_reach_the_child(several_blas_threads):
    inside, leave = threading.Event(), threading.Event()

    def stay():
        with bf.threads(1):
            inside.set()
            leave.wait(60)

    other = threading.Thread(target=stay)
    other.start()
    inside.wait(60)
    assert blas_threads() == 1
    assert in_child(blas_threads) == 4
    with bf.threads(3):
        assert in_child(lambda: 10 * blas_threads() + thread_count()) == 33
    leave.set()
    other.join()
    assert blas_threads() == 4


def small_fit():
    return bf.solve(PROBLEMS["entries"], 2, rng=0, max_iter=20).matrix()


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
@pytest.mark.parametrize("method", multiprocessing.get_all_start_methods())
def test_processes_of_multiprocessing(method):
    with multiprocessing.get_context(method).Pool(1) as processes:
        there = processes.apply_async(bf.solve, (PROBLEMS["entries"], 2), {"rng": 0, "max_iter": 20}).get(60)
    np.testing.assert_allclose(there.matrix(), small_fit(), atol=1e-9)


def test_processes_of_joblib():
    there = Parallel(n_jobs=2, timeout=60)(
        delayed(bf.solve)(PROBLEMS["entries"], 2, rng=0, max_iter=20) for _ in range(2)
    )
    for result in there:
        np.testing.assert_allclose(result.matrix(), small_fit(), atol=1e-9)
