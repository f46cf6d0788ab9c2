"""Columns of numbers that print as a small table, in a terminal and in a notebook, and convert to a data frame."""

from dataclasses import fields
from importlib.util import find_spec
from typing import Any, Literal

import numpy as np

from bifactor.arrays import Array
from bifactor.display.card import card, charts
from bifactor.display.html import table
from bifactor.errors import BifactorError, InputError
from bifactor.validation import pluralize

Backend = Literal["pandas", "polars", "pyarrow"]
BACKENDS: tuple[Backend, ...] = ("pandas", "polars", "pyarrow")

SHOWN = 5
"""The number of lines shown at each end of a long table."""


class Listing:
    """A dataclass whose arrays are columns of equal length."""

    _lines = "line"
    """A noun for a line of the table."""

    def columns(self) -> dict[str, Array]:
        """The columns by name."""
        values = {part.name: getattr(self, part.name) for part in fields(self)}  # type: ignore[arg-type]
        return {name: value for name, value in values.items() if isinstance(value, np.ndarray)}

    def to_frame(self, backend: Backend | None = None) -> Any:
        """The columns as a data frame.

        Parameters
        ----------
        backend : {"pandas", "polars", "pyarrow"}, optional
            The library; by default, the first of these that is installed.
        """
        if backend is not None and backend not in BACKENDS:
            raise InputError(f"backend={backend!r} is not a data frame library. Choose one of {', '.join(BACKENDS)}.")
        installed = [name for name in BACKENDS if backend in (None, name) and find_spec(name) is not None]
        if not installed:
            raise BifactorError(
                f"A data frame needs {backend or 'pandas, polars or pyarrow'}, which is not installed. "
                "Install it, or use columns()."
            )
        import narwhals

        return narwhals.from_dict(self.columns(), backend=installed[0]).to_native()

    def __repr__(self) -> str:
        header, lines = self._table()
        widths = [max(map(len, column)) for column in zip(header, *lines, strict=True)]
        texts = ("  ".join(cell.rjust(w) for cell, w in zip(line, widths, strict=True)) for line in (header, *lines))
        return f"{type(self).__name__}: {self._about()}\n" + "\n".join(texts)

    def _repr_html_(self) -> str:
        return card(type(self).__name__, self._about(), charts(*self.pictures()), table(*self._table()))

    def _about(self) -> str:
        """A few words before the table."""
        return pluralize(len(next(iter(self.columns().values()))), self._lines)

    def pictures(self) -> list[str]:
        """Charts before the table, in a notebook."""
        return []

    def _table(self) -> tuple[list[str], list[list[str]]]:
        """Names and lines as text, without the middle lines if there are many."""
        columns = self.columns()
        length = len(next(iter(columns.values())))
        some = range(length) if length <= 2 * SHOWN + 2 else [*range(SHOWN), None, *range(length - SHOWN, length)]
        lines = [["…" if k is None else cell_text(column[k]) for column in columns.values()] for k in some]
        return [name.replace("_", " ") for name in columns], lines


def cell_text(value: Any) -> str:
    """A number, a flag or a word as a cell of a table."""
    if isinstance(value, (bool, np.bool_)):
        return "yes" if value else "no"
    return str(value) if isinstance(value, str) else f"{value:.6g}"
