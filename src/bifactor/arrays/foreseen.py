"""Sums over the parts of tall arrays: several are requested together, and known ones are not requested again."""

from collections.abc import Callable, Sequence
from typing import Any
from weakref import ref

from bifactor.arrays.planned import Noted, Plan


class Sum:
    """The sum of a function of each part of some arrays, to which it has weak references."""

    def __init__(self, function: Callable[..., Any], *arrays: Any):
        self.function, self.arrays = function, [ref(a) for a in arrays]
        self.key = (function, *map(id, arrays))

    @property
    def _found(self) -> tuple[Any, Any] | None:
        home = self.arrays[0]()
        found = None if home is None else home.known.get(self.key)
        return found if found is not None and all(a() is not None for a in found[0]) else None

    @property
    def known(self) -> bool:
        return self._found is not None

    @property
    def value(self) -> Any:
        assert self._found is not None
        return self._found[1]

    @property
    def noted(self) -> Noted | None:
        """The function to run; None if the sum is known or an array no longer exists."""
        arrays = [a() for a in self.arrays]
        gone = any(a is None for a in arrays)
        return None if gone or self.known else Noted(self.function, tuple(a.noted for a in arrays if a is not None))

    def learn(self, parts: Sequence[Any]) -> None:
        home = self.arrays[0]()
        if home is not None:
            home.known[self.key] = self.arrays, added(parts)


def added(values: Sequence[Any]) -> Any:
    return sum(values[1:], values[0])


class Question:
    """A plan for some arrays and sums, and for the sums that are foreseen."""

    def __init__(self, device: Any, asked: Sequence[Noted], *sums: Sum):
        foreseen = {one.key: one for one in (*device.foreseen, *sums)}.values()
        device.foreseen = []  # even if the answer is lost
        pairs = [(one, one.noted) for one in foreseen]
        self.sums = [(one, noted) for one, noted in pairs if noted is not None]
        self.plan = Plan([*asked, *(noted for _, noted in self.sums)])

    def learn(self, told: Sequence[tuple[Any, ...]]) -> None:
        """Store the sums, whose terms come last in the answer of each part."""
        for k, (one, _) in enumerate(self.sums, -len(self.sums)):
            one.learn([part[k] for part in told])
