"""Imputation of tables with columns of any kind, from file to file."""

from typing import TYPE_CHECKING

from bifactor._compat import lazy

if TYPE_CHECKING:
    from bifactor.applications.imputation.workflow import ImputedTable as ImputedTable
    from bifactor.applications.imputation.workflow import impute as impute
else:
    __getattr__, __dir__, __all__ = lazy(__name__, dict.fromkeys(("ImputedTable", "impute"), "workflow"))
