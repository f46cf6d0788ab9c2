"""Recommendations from clicks, plays and purchases, from data to report; lists of fits to values, too."""

from typing import TYPE_CHECKING

from bifactor._compat import lazy

if TYPE_CHECKING:
    from bifactor.applications.recommender.lists import RecommendationLists as RecommendationLists
    from bifactor.applications.recommender.lists import recommend as recommend
    from bifactor.applications.recommender.workflow import complete as complete
    from bifactor.applications.recommender.workflow import evaluate as evaluate
else:
    __getattr__, __dir__, __all__ = lazy(
        __name__,
        {
            **dict.fromkeys(("RecommendationLists", "recommend"), "lists"),
            **dict.fromkeys(("complete", "evaluate"), "workflow"),
        },
    )
