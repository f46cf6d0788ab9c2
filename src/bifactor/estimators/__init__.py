"""Ready-made estimators for common tasks, with scikit-learn's conventions."""

from typing import TYPE_CHECKING

from bifactor._compat import lazy

if TYPE_CHECKING:
    from bifactor.applications.pictures.estimator import ImageCompletion as ImageCompletion
    from bifactor.estimators.factor_analysis import FactorAnalysis as FactorAnalysis
    from bifactor.estimators.matrix_completion import MatrixCompletion as MatrixCompletion
    from bifactor.estimators.matrix_completion import OneBitCompletion as OneBitCompletion
    from bifactor.estimators.pca import LogisticPCA as LogisticPCA
    from bifactor.estimators.pca import PoissonPCA as PoissonPCA
    from bifactor.estimators.recommender import Recommender as Recommender
    from bifactor.estimators.state_tomography import StateTomography as StateTomography
    from bifactor.estimators.table_imputer import TableImputer as TableImputer
    from bifactor.models.tomography.goodness_of_fit import MisfitWarning as MisfitWarning
    from bifactor.models.tomography.measurements import linear_inversion as linear_inversion
    from bifactor.models.tomography.measurements import nearest_state as nearest_state
else:
    __getattr__, __dir__, __all__ = lazy(
        __name__,
        {
            "FactorAnalysis": "factor_analysis",
            "LogisticPCA": "pca",
            "ImageCompletion": "bifactor.applications.pictures.estimator",
            "MatrixCompletion": "matrix_completion",
            "OneBitCompletion": "matrix_completion",
            "PoissonPCA": "pca",
            "Recommender": "recommender",
            "StateTomography": "state_tomography",
            "TableImputer": "table_imputer",
            "MisfitWarning": "bifactor.models.tomography.goodness_of_fit",
            "linear_inversion": "bifactor.models.tomography.measurements",
            "nearest_state": "bifactor.models.tomography.measurements",
        },
    )
