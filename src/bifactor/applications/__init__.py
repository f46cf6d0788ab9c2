"""One package for each kind of question: a workflow that answers it from start to end, and its report."""

from typing import TYPE_CHECKING

from bifactor._compat import lazy

if TYPE_CHECKING:
    from bifactor.applications import completion as completion
    from bifactor.applications import imputation as imputation
    from bifactor.applications import pictures as pictures
    from bifactor.applications import recommender as recommender
    from bifactor.applications import tomography as tomography
else:
    _ROOMS = ("completion", "imputation", "pictures", "recommender", "tomography")
    __getattr__, __dir__, __all__ = lazy(__name__, {room: room for room in _ROOMS})
