"""Counts in text and in JSON."""


def counted(count: int, noun: str) -> str:
    """A number with its noun: 1 entry, 1,200 entries."""
    several = noun.removesuffix("y") + "ies" if noun.endswith("ry") else noun + "s"
    return f"{count:,} {noun if count == 1 else several}"


def whole(number: float) -> int | float:
    """The number, as an int if it is an integer."""
    return int(number) if float(number).is_integer() else float(number)
