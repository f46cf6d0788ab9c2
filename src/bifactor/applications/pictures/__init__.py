"""Completion of pictures with missing pixels, as pictures rather than matrices."""

from typing import TYPE_CHECKING

from bifactor._compat import lazy

if TYPE_CHECKING:
    from bifactor.applications.pictures.workflow import Inpainted as Inpainted
    from bifactor.applications.pictures.workflow import inpaint as inpaint
else:
    __getattr__, __dir__, __all__ = lazy(__name__, dict.fromkeys(("Inpainted", "inpaint"), "workflow"))
