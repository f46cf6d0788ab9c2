"""Sizes of memory as people write them."""

import re
from typing import Any

from bifactor.errors import InputError
from bifactor.validation import is_count

UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12, "ki": 2**10, "mi": 2**20, "gi": 2**30, "ti": 2**40}

WRITTEN = re.compile(r"\s*([0-9]*\.?[0-9]+)\s*([kmgt]i?)?b?\s*", re.IGNORECASE)


def bytes_of(size: Any, name: str = "memory") -> int:
    """A number of bytes from 2_000_000_000, "2GB", "512 MiB" or the like."""
    if is_count(size, 1):
        return int(size)
    found = WRITTEN.fullmatch(size) if isinstance(size, str) else None
    if found is None or float(found[1]) <= 0:
        raise InputError(f"{name}={size!r} is not a size. Pass a number of bytes, or text such as '2GB' or '512MB'.")
    return max(1, int(float(found[1]) * UNITS[(found[2] or "").lower()]))
