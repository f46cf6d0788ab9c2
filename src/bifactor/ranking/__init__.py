"""Quality of recommendations: metrics of ranked lists, splits of positives, and one `evaluate` for any model."""

from bifactor.ranking.evaluation import Difference, Evaluation, Recommends, evaluate, interval, judge
from bifactor.ranking.metrics import (
    average_precision,
    coverage,
    hit_rate,
    ndcg,
    popularity_share,
    precision,
    recall,
    reciprocal_rank,
)
from bifactor.ranking.splits import Split, by_entry, by_time, by_user

__all__ = [
    "Difference",
    "Evaluation",
    "Recommends",
    "Split",
    "average_precision",
    "by_entry",
    "by_time",
    "by_user",
    "coverage",
    "evaluate",
    "hit_rate",
    "interval",
    "judge",
    "ndcg",
    "popularity_share",
    "precision",
    "recall",
    "reciprocal_rank",
]
