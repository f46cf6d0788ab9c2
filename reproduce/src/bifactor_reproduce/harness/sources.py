"""Where real data are."""

import os
from dataclasses import dataclass
from pathlib import Path

from bifactor.errors import InputError

VARIABLE = "BIFACTOR_DATA"

RATINGS = ("ml-100k/u.data", "ml-100k/u.data.gz")


@dataclass(frozen=True)
class Sources:
    """Paths, None where there is nothing; they are no part of what outcomes are kept under, the contents are."""

    photos: Path | None = None
    """A folder of pictures."""
    ratings: Path | None = None
    """A table of users, films and ratings."""

    @classmethod
    def found(cls, photos: Path | None = None, ratings: Path | None = None) -> "Sources":
        """What is given, or else in the folder that BIFACTOR_DATA names, or in shared/data beside the working one."""
        if photos is not None and not photos.is_dir():
            raise InputError(f"{photos} is not a folder. Pass one with pictures.")
        if ratings is not None and not ratings.is_file():
            raise InputError(f"{ratings} is not a file. Pass a table of users, films and ratings.")
        told = os.environ.get(VARIABLE)
        if told is not None and not Path(told).is_dir():
            raise InputError(f"{VARIABLE}={told} is not a folder. Set it to one with data, or unset it.")
        folder = Path(told) if told is not None else Path("..", "shared", "data")
        large = folder / "photos-large"
        tables = [folder / name for name in RATINGS if (folder / name).is_file()]
        return cls(photos or (large if large.is_dir() else None), ratings or (tables[0] if tables else None))
