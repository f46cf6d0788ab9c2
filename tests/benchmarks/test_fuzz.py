"""Random small problems, odd tables and settings: no surprise, no NaN."""

import sys
from pathlib import Path

import numpy as np
import pytest

import bifactor as bf
from bifactor.errors import BifactorError

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # benchmarks are not installed with the library

from benchmarks.fuzz import fuzz_kills
from benchmarks.fuzz.fuzz_fits import FINISHED, REFUSED, Fuzzed, outcome, run
from benchmarks.harness.children import outcomes
from benchmarks.harness.fuzzed import BALANCES, INITS, RULES, draw_parts, one_of


def test_no_surprise():
    cases = [Fuzzed(0, number) for number in range(500)]
    came = {case: outcome(case) for case in cases}
    surprises = {case.words: words for case, words in came.items() if words not in (FINISHED, REFUSED)}
    # What conftest allows for rounding is meant for data of usual sizes, which not all of these are.
    drifts = [words for words, came in surprises.items() if "the objective is off by" in came]
    assert [words for words in surprises if words not in drifts] == []
    assert len(drifts) <= len(cases) / 100
    assert sum(words == FINISHED for words in came.values()) >= 400


def test_columns_that_stay_empty_are_no_surprise():
    assert outcome(Fuzzed(7712, 155)) == FINISHED  # `TableImputer(keep_empty_features=True)` and columns of objects


def test_a_case_comes_again_from_its_seed():
    for number in range(20):
        first, second = Fuzzed(3, number), Fuzzed(3, number)
        assert outcome(first) == outcome(second)
        assert (first.name, first.words) == (second.name, second.words)


def test_surprises_are_counted_and_told(monkeypatch):
    def broken(*arguments, **options):
        raise ZeroDivisionError("division by zero")

    monkeypatch.setattr(bf, "solve", broken)
    rows = list(run(cases=12, seed=1))
    told = [row for row in rows if "came" in row]
    assert sum(row.get("surprises", 0) for row in rows) == len(told) > 0
    assert {row["came"] for row in told} == {"ZeroDivisionError: division by zero"}
    assert all(row["objective"].startswith("seed 1, case ") for row in told)


def test_descents_end_no_higher_than_they_began():
    finished = 0
    for seed in range(600):
        rng = np.random.default_rng([7, seed])
        parts, rule = draw_parts(rng), one_of(rng, RULES)
        solver = bf.solvers.FGD(rule) if "symmetric" in parts.options else bf.solvers.BFGD(rule, one_of(rng, BALANCES))
        try:
            problem = parts.problem()
            rank = int(rng.integers(1, min(problem.shape) + 1))
            result = bf.solve(problem, rank, solver, one_of(rng, INITS), seed, max_iter=12, tol=0)
        except BifactorError:
            continue
        first = result.history.objective[0]
        assert result.objective <= first + 1e3 * np.finfo(problem.dtype).eps * abs(first), seed
        finished += 1
    assert finished >= 150


@pytest.mark.parametrize("kind", fuzz_kills.KINDS)
def test_runs_that_were_killed_are_resumed_bit_for_bit(kind):
    """A small share of what `python -m benchmarks.fuzz.fuzz_kills` does."""
    told, examples = outcomes(fuzz_kills.case, kind, 0, 3)
    assert set(told) <= {"same", "refused"}, examples
    assert told["same"] >= 2
