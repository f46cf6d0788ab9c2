"""The display of a function of X, printed and in notebooks."""

from typing import Any

from bifactor.display.card import card, figures


class Shown:
    """A base class that shows a shape and a dtype."""

    shape: tuple[int, int]
    dtype: Any

    def __repr__(self) -> str:
        m, n = self.shape
        return f"{type(self).__name__}({m}×{n}, {self.dtype})"

    def _repr_html_(self) -> str:
        m, n = self.shape
        loss = getattr(self, "loss", None)
        shown = [(f"{m:,}×{n:,}", "matrix"), (self.dtype, "precision"), (loss, "loss")]
        return card(type(self).__name__, "a function f(X)", figures(shown))
