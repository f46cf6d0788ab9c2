"""Counts, as people and JSON have them."""


def counted(count: int, noun: str) -> str:
    """A number of things as people say it: 1 entry, 1,200 entries."""
    several = noun.removesuffix("y") + "ies" if noun.endswith("ry") else noun + "s"
    return f"{count:,} {noun if count == 1 else several}"


def whole(number: float) -> int | float:
    """An integer where it is one."""
    return int(number) if float(number).is_integer() else float(number)
