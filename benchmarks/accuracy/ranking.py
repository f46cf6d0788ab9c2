"""Clicks: how well models rank what users have chosen, against popularity, EASE and two libraries.

All items are ranked. In "8:1:1" a tenth of the positives of each user is the test part and another tenth is for
choosing settings; recall is hits/|T|. In "new users" a fifth of the users is new in the test, another fifth in the
validation part, and of each four fifths are known; recall is hits/min(k, |T|). Settings are chosen on the validation
part of each split, by NDCG, in a space that is fixed in harness/rankers.py; the model is not fitted again with that
part. `seconds` are of the fit with the settings chosen, `trials` is how many were tried. `low` and `high` bound NDCG by
a bootstrap over users. `behind` is NDCG less that of the best model of the split, user by user, and `behind_high` its
upper bound. A part: `python -m benchmarks.accuracy.ranking --sets msweb --models EASE --splits 1`.
"""

import argparse
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness import report, table
from benchmarks.harness.click_data import CLICKS
from benchmarks.harness.rows import Absent, Row, median, row, timed
from benchmarks.rivals.clicks import RANKERS, Ranker, Settings
from bifactor.ranking import Evaluation, Recommends, Split, by_entry, by_user, evaluate

SEED, SPLITS = 401, 3
"""The first seed, and how many."""

SHARES = "coverage@10", "popularity_share@10"


@dataclass(frozen=True)
class Protocol:
    """How positives are split and lists are judged; the first metric chooses settings."""

    split: Callable[..., Split]
    depths: tuple[int, ...]
    metrics: tuple[str, ...]
    denominator: str

    def judge(self, model: Recommends, split: Split) -> Evaluation:
        return evaluate(model, split, self.depths, denominator=self.denominator)


PROTOCOLS = {
    "8:1:1": Protocol(by_entry, (10,), ("ndcg@10", "recall@10"), "all"),
    "new users": Protocol(
        partial(by_user, users=(0.2, 0.2)), (10, 20, 50, 100), ("ndcg@100", "recall@20", "recall@50"), "k"
    ),
}

MODELS = {ranker.name: ranker for ranker in RANKERS}
"""Those that are compared, by name."""


@dataclass(frozen=True, eq=False)
class Outcome:
    """A model on one split: its metrics and settings."""

    test: Evaluation
    settings: Settings
    trials: int
    seconds: float


@dataclass(frozen=True, eq=False)
class Trial:
    """A model with some settings, and its score on the validation part."""

    settings: Settings
    model: Recommends
    seconds: float
    score: float


def tried(ranker: Ranker, protocol: Protocol, split: Split, settings: Settings) -> Trial:
    kept: list[Any] = []
    seconds = timed(lambda: kept.append(ranker.fit(split.train, **settings)))["seconds"]
    score = protocol.judge(kept[0], split.validation)[protocol.metrics[0]]
    return Trial(settings, kept[0], seconds, score)


def tuned(ranker: Ranker, protocol: Protocol, split: Split) -> Outcome:
    """The model with the settings that are best on the validation part, judged by the test part."""
    best = max((tried(ranker, protocol, split, settings) for settings in ranker.settings), key=score_of)
    wider = [tried(ranker, protocol, split, {**best.settings, **other}) for other in ranker.then]
    best = max([best, *wider], key=score_of)
    trials = len(ranker.settings) + len(ranker.then)
    return Outcome(protocol.judge(best.model, split), best.settings, trials, best.seconds)


def score_of(trial: Trial) -> float:
    """A score that is not finite comes last."""
    return float(np.nan_to_num(trial.score, nan=-np.inf))


def split_rows(objective: str, data: str, positives: Any, seed: int, models: Iterable[Ranker]) -> list[Row]:
    """All models on one split."""
    protocol = PROTOCOLS[objective]
    split, outcomes, rows = protocol.split(positives, seed=seed), {}, []
    for ranker in models:
        try:
            outcomes[ranker.name] = tuned(ranker, protocol, split)
        except Absent as reason:
            rows.append(row(objective, data, ranker.name, skipped=str(reason)))
    first = protocol.metrics[0]
    best = max(outcomes, key=lambda name: outcomes[name].test[first], default=None)
    for name, found in outcomes.items():
        behind = found.test.difference(outcomes[best].test, first)
        rows.append(
            row(
                objective,
                data,
                name,
                draw=seed,
                **numbers(protocol, found),
                behind=behind.mean,
                behind_high=behind.high,
            )
        )
    return rows


def numbers(protocol: Protocol, found: Outcome) -> Row:
    low, high = found.test.interval(protocol.metrics[0])
    return {
        **{name: found.test[name] for name in (*protocol.metrics, *SHARES)},
        "low": low,
        "high": high,
        "users": found.test.users.size,
        "left_out": found.test.left_out,
        "seconds": found.seconds,
        "trials": found.trials,
        "chosen": ", ".join(f"{name} {value:g}" for name, value in found.settings.items()),
    }


def measured(
    data: Iterable[str], objectives: Iterable[str], models: Iterable[str], splits: int, seed: int = SEED
) -> Iterator[list[Row]]:
    """The rows of each split of each set, one list after the other."""
    rankers, objectives = [MODELS[name] for name in models], list(objectives)
    for name in data:
        try:
            positives = CLICKS[name].read()
        except Absent as reason:
            yield [row(", ".join(objectives), name, "", skipped=str(reason))]
            continue
        for objective in objectives:
            for draw in range(seed, seed + splits):
                yield split_rows(objective, name, positives, draw, rankers)


def summary(rows: list[Row]) -> tuple[list[dict[str, str]], str]:
    """For each set, the best model and those not significantly worse."""
    lines = []
    for (objective, data), group in table.grouped(rows, ("objective", "data")).items():
        judged = [found for found in group if "behind" in found]
        if not judged:
            continue
        metric = PROTOCOLS[objective].metrics[0]
        line = {"objective": objective, "data": data, "metric": metric}
        for (name,), runs in table.grouped(judged, ("solver",)).items():
            level = sum(found["behind_high"] >= 0 for found in runs)
            behind = median(found["behind"] for found in runs)
            line[name] = f"{np.mean([found[metric] for found in runs]):.4f} ({behind:+.4f}, {level} of {len(runs)})"
        lines.append(line)
    return lines, (
        "mean over splits (median of the difference to the best model of a split; in how many splits the interval of "
        "this difference, paired over users, has 0 in it)."
    )


def run() -> Iterator[Row]:
    for rows in measured(CLICKS, PROTOCOLS, MODELS, SPLITS):
        yield from rows


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.accuracy.ranking", description=__doc__)
    parser.add_argument("--sets", nargs="+", choices=CLICKS, default=list(CLICKS), metavar="NAME")
    parser.add_argument("--models", nargs="+", choices=MODELS, default=list(MODELS), metavar="NAME")
    parser.add_argument("--protocols", nargs="+", choices=PROTOCOLS, default=list(PROTOCOLS), metavar="NAME")
    parser.add_argument("--splits", type=int, default=SPLITS, help=f"of each set ({SPLITS})")
    parser.add_argument("--seed", type=int, default=SEED, help=f"of the first split ({SEED})")
    parser.add_argument("--output", type=Path, metavar="FILE.json", help="write the raw numbers there")
    asked = parser.parse_args()
    found: dict[str, Any] = {"metadata": report.metadata(), "rows": []}
    for rows in measured(asked.sets, asked.protocols, asked.models, asked.splits, asked.seed):
        found["rows"] += [report.plain({"benchmark": "ranking", **one}) for one in rows]
        if asked.output:  # after each, so that a long run that is stopped leaves what it has found
            report.save(asked.output, found)
    for part in table.grouped(found["rows"], ("objective",)).values():  # they have different metrics
        table.show({**found, "rows": part})


if __name__ == "__main__":
    main()
