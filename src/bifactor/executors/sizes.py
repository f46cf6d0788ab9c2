"""Amounts of memory in text, such as "2GB"."""

import re
from typing import Any

import numpy as np

from bifactor.errors import InputError

UNITS = {"": 1, "k": 1e3, "m": 1e6, "g": 1e9, "t": 1e12, "ki": 2**10, "mi": 2**20, "gi": 2**30, "ti": 2**40}

WRITTEN = re.compile(r"\s*(\d+(?:\.\d*)?)\s*([kmgt]?i?)b?\s*", re.IGNORECASE)

MOST = 1 << 60


def bytes_of(memory: Any, least: int = 1) -> int:
    """The number of bytes in "2GB", "512 MiB" or 2_000_000_000."""
    found = WRITTEN.fullmatch(memory) if isinstance(memory, str) else None
    if found is not None:
        number = float(found[1]) * UNITS[found[2].lower()]
    elif isinstance(memory, (int, np.integer)) and not isinstance(memory, bool):
        number = float(max(-1, min(int(memory), MOST)))  # others may be too large for a float
    elif isinstance(memory, (float, np.floating)) and np.isfinite(memory):
        number = float(memory)
    else:
        raise InputError(f"memory={memory!r} is not an amount of memory. Pass, for example, '2GB' or '512MiB'.")
    if not least <= number < MOST:
        needed = f"{least >> 20} MiB" if least >= 1 << 20 else f"{least} byte"
        raise InputError(f"memory={memory!r} is too little, or too much. Pass at least {needed}.")
    return int(number)
