"""The files of the report."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bifactor.errors import FileError
from bifactor.running.files import write_atomically
from bifactor_reproduce.harness.items import Table
from bifactor_reproduce.report.figures import drawn
from bifactor_reproduce.report.page import page
from bifactor_reproduce.report.section import Section, require_names
from bifactor_reproduce.report.tables import as_csv
from bifactor_reproduce.report.verdicts import COLUMNS, lines

INDEX = "index.html"


def write_report(folder: Path, sections: Sequence[Section], about: Mapping[str, Any]) -> Path:
    """Write everything into `folder`, which is made where it is missing; returns the page, `index.html`.

    Each file is replaced whole, and the page last, so that it never links to what is not there yet. The bytes depend
    on the arguments only. `about` is shown as it is: names and values, which may be mappings or sequences; the value
    of `scale`, if any, is shown at the top as well.

    Raises
    ------
    InputError
        Where two items have the same name, or a name that cannot be a file's.
    FileError
        Where something cannot be written.
    """
    require_names(sections)
    drawings = {}
    for item in (item for section in sections for item in section.items):
        if isinstance(item, Table):
            _put(folder / "tables" / f"{item.name}.csv", as_csv(item.columns, item.rows))
        else:
            drawing = drawn(item)
            _put(folder / "figures" / f"{item.name}.png", drawing.png)
            _put(folder / "figures" / f"{item.name}.svg", drawing.svg)
            drawings[item.name] = drawing.inline
    _put(folder / "verdicts.csv", as_csv(COLUMNS, lines(sections)))
    _put(folder / INDEX, page(sections, about, drawings))
    return folder / INDEX


def _put(path: Path, content: str | bytes) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileError(f"Cannot write {path}: {error.strerror}. Check the folder.") from None
    write_atomically(path, content.encode() if isinstance(content, str) else content)
