"""Opens what a user passes as a source of observations in pieces."""

import os
from pathlib import Path
from typing import Any

from bifactor.errors import InputError
from bifactor.tables.layout import Asked, sniffed
from bifactor.tables.observations import Observations
from bifactor.tables.read import KINDS, OTHERS, read
from bifactor.tables.source import head, require_file
from bifactor.tables.store.parquet_source import Parquet
from bifactor.tables.store.places import identity, is_parquet, listed, places
from bifactor.tables.store.sources import Delimited, Held, Source
from bifactor.tables.store.triples import Triples


def identified(source: Any) -> list[list[Any]] | None:
    """The names, sizes and times of the files of a source; None for data in memory."""
    return identity(listed(source)) if _is_named(source) else None


def opened(source: Any, asked: Asked) -> Source:
    """A source of observations; raise `InputError` or `FileError` if it is not valid."""
    if isinstance(source, Observations):
        return Held((source.with_text_names() if asked.text_names else source).weighed())
    if isinstance(source, tuple) and not _is_named(source):
        return Triples(source)
    if not _is_named(source):
        return Held(_read(source, asked))
    names = listed(source)
    if any("://" in name or is_parquet(name) for name in names):
        if not all(is_parquet(name) or "://" in name for name in names):
            raise InputError("Some of the files are parquet and some are not. Pass files of one kind.")
        for name in names:
            if "://" not in name:
                require_file(Path(name))
        found = Parquet(places(names), asked)
        return Held(_read(names[0], asked)) if found.wide else found
    for name in names:
        require_file(Path(name))
    whole = tuple(end for end in (*KINDS, *OTHERS))
    if any(name.lower().removesuffix(".gz").endswith(whole) for name in names):
        if len(names) > 1:
            raise InputError(f"Only one file of the kind of {names[0]} is read. Pass one, or parquet or text files.")
        return Held(_read(names[0], asked))
    if len(names) == 1 and sniffed(head(Path(names[0])), asked, Path(names[0])).wide:
        return Held(_read(names[0], asked))
    return Delimited([Path(name) for name in names], asked)


def _is_named(source: Any) -> bool:
    """Whether the source is files."""
    if isinstance(source, tuple):
        return bool(source) and all(isinstance(part, (str, os.PathLike)) for part in source)
    return isinstance(source, (str, os.PathLike, list))


def _read(source: Any, asked: Asked) -> Observations:
    names = ("row", "col", "value", "weight", "values", "text_names")
    return read(source, **{name: getattr(asked, name) for name in names})
