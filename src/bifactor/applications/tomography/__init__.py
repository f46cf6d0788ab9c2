"""Quantum state tomography from counts, from file to file."""

from typing import TYPE_CHECKING

from bifactor._compat import lazy

if TYPE_CHECKING:
    from bifactor.applications.tomography.workflow import EstimatedState as EstimatedState
    from bifactor.applications.tomography.workflow import tomography as tomography
else:
    __getattr__, __dir__, __all__ = lazy(__name__, dict.fromkeys(("EstimatedState", "tomography"), "workflow"))
