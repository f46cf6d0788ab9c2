"""Runs with a stopwatch."""

import itertools
import time

import numpy as np
import pytest

import bifactor as bf
from bifactor.metrics import relative_error
from bifactor_reproduce.harness.timed import SPREAD, Stopwatch, timed


@pytest.fixture
def problem(make_problem):
    return make_problem()


def spin(seconds):
    """Use the processor: sleep would not count."""
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass


def test_time_spent_on_errors_does_not_count(problem):
    looked = []

    def slow(U, V):
        looked.append(1)
        spin(0.05)
        return 1.0

    outcome = timed(problem, 2, bf.solvers.PCG(), max_iter=10, tol=0, error=slow).outcome
    assert len(looked) >= 8
    assert outcome["seconds"] < 0.05 * len(looked) / 2


def test_the_run_is_that_of_solve(problem):
    done = timed(problem, 2, bf.solvers.BFGD(), bf.inits.Random(), max_iter=30, tol=0, seed=5)
    same = bf.solve(problem, 2, bf.solvers.BFGD(), bf.inits.Random(), 5, max_iter=30, tol=0)
    np.testing.assert_array_equal(done.result.U, same.U)
    assert done.outcome["iterations"] == same.n_iter
    assert done.outcome["stopped"] == "all iterations"
    assert "error" not in done.outcome


def test_curve_is_dense_at_first_and_ends_at_the_end(problem):
    truth = problem.truth

    def error(U, V):
        return relative_error(U, V, *truth)

    done = timed(problem, 2, bf.solvers.BFGD(), bf.inits.Random(), max_iter=200, tol=0, error=error)
    its = done.outcome["curve"]["iteration"]
    assert its[:20] == list(range(1, 21))
    assert its[-1] == 200
    assert all(b <= max(a + 1, SPREAD * a + 1) for a, b in itertools.pairwise(its))
    assert len(its) == len(done.outcome["curve"]["error"]) == len(done.outcome["curve"]["seconds"])
    assert done.outcome["error"] == pytest.approx(error(done.result.U, done.result.V))
    seconds = done.outcome["curve"]["seconds"]
    assert seconds == sorted(seconds)


def test_a_used_up_budget_is_told(problem):
    done = timed(problem, 2, bf.solvers.BFGD(), max_iter=10**6, tol=0, budget=0.05)
    assert done.outcome["stopped"] == "budget of 0.05 s"
    assert 0.05 <= done.outcome["seconds"] < 5


def test_converged_and_diverged_are_told(problem):
    assert timed(problem, 2, bf.solvers.PCG(), max_iter=1000, tol=1e-8).outcome["stopped"] == "converged"
    wild = bf.solvers.BFGD(bf.steps.Constant(1e3), balance=None)
    assert timed(problem, 2, wild, max_iter=1000, tol=1e-8).outcome["stopped"] == "diverged"


def test_time_of_an_iteration_leaves_out_the_first():
    watch = Stopwatch(None, float("inf"))
    spin(0.05)
    for iteration in (1, 2, 3):
        watch(iteration, None)
    assert watch.steps[0] >= 0.05
    assert max(watch.steps[1:]) < 0.05
