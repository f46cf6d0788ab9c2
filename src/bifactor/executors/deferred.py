"""Functions of arrays in parts: recorded first, and run together, once for each part, when a number is needed.

`Deferred` stands for an array, `DeferredPlan` collects what a question needs, and a `PartProgram` is what runs where a
part is stored. Arrays that are still referenced when a plan is made are kept there, since they may be needed again;
others are not.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple
from weakref import ref

import numpy as np

Handle = Any
"""An object that stands for a tuple of arrays, or of numbers, of one part: only its placement looks inside."""


class PerPart(tuple[Any, ...]):
    """An operand with a different small value for each part."""


@dataclass(frozen=True, eq=False)
class ResultGroup:
    """Arrays that were computed together: for each part, they stay in memory as long as one of them is referenced."""

    handles: tuple[Handle, ...]
    count: int
    """The number of values that each handle stands for."""


class Deferred:
    """An array, given by the function that computes it or, once it is computed, by where it is stored."""

    def __init__(self, function: Callable[..., Any] | None, operands: tuple[Any, ...] = ()):
        self.function, self.operands = function, operands
        self.bundle: ResultGroup | None = None
        self.index = 0
        self.holder: Callable[[], Any] = _nobody

    @classmethod
    def made(cls, bundle: ResultGroup, index: int) -> "Deferred":
        found = cls(None)
        found.settle(bundle, index)
        return found

    def settle(self, bundle: ResultGroup, index: int) -> None:
        """Mark the array as computed, and release its operands."""
        self.function, self.operands, self.bundle, self.index = None, (), bundle, index

    def held_by(self, holder: Any) -> None:
        self.holder = ref(holder)


def _nobody() -> None:
    return None


class Register(int):
    """The number of a value of a program."""


class PartProgram(NamedTuple):
    """Functions of given values and of the values of earlier functions."""

    steps: tuple[tuple[Callable[..., Any], tuple[Any, ...]], ...]
    kept: tuple[int, ...]
    """The values that stay where they are."""
    asked: tuple[int, ...]
    """The values that are asked for."""

    def run(self, each: Sequence[Any], bundles: Iterable[Sequence[Any]]) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """The values of one part that are kept, and those that are asked for."""
        values = [*each, *(value for bundle in bundles for value in bundle)]
        for function, operands in self.steps:
            values.append(function(*(values[a] if isinstance(a, Register) else a for a in operands)))
        return tuple(values[k] for k in self.kept), tuple(values[k] for k in self.asked)


class DeferredPlan:
    """All functions that have to run to compute some arrays or sums."""

    def __init__(self, asked: Sequence[Deferred]):
        ahead = _in_order(asked)
        given = [one.bundle for one in (*asked, *(a for note in ahead for a in note.operands)) if _is_made(one)]
        self.bundles: list[ResultGroup] = list(dict.fromkeys(given))
        self.each = [a for note in ahead for a in note.operands if isinstance(a, PerPart)]
        self.kept = [note for note in ahead if note.holder() is not None]
        starts = np.cumsum([len(self.each), *(bundle.count for bundle in self.bundles)]).tolist()
        first = dict(zip(map(id, self.bundles), starts, strict=False))
        slots: dict[int, Register] = {id(a): Register(k) for k, a in enumerate(self.each)}
        slots |= {id(note): Register(starts[-1] + k) for k, note in enumerate(ahead)}

        def at(operand: Any) -> Any:
            if _is_made(operand):
                return Register(first[id(operand.bundle)] + operand.index)
            return slots.get(id(operand), operand)

        steps = tuple((note.function, tuple(at(a) for a in note.operands)) for note in ahead)
        self.program = PartProgram(steps, tuple(at(a) for a in self.kept), tuple(at(a) for a in asked))  # type: ignore[arg-type]

    def each_of(self, part: int) -> list[Any]:
        return [a[part] for a in self.each]

    def settle(self, handles: Sequence[Handle], count: int, before: int = 0) -> ResultGroup:
        """Mark what is kept as computed: it follows the first `before` of the `count` values of each handle."""
        bundle = ResultGroup(tuple(handles), count)
        for k, note in enumerate(self.kept):
            note.settle(bundle, before + k)
        return bundle

    def settle_apart(self, columns: Sequence[Sequence[Handle]]) -> None:
        """Mark what is kept as computed, each array with its own handles."""
        for note, handles in zip(self.kept, columns, strict=True):
            note.settle(ResultGroup(tuple(handles), 1), 0)


def _is_made(operand: Any) -> bool:
    return isinstance(operand, Deferred) and operand.bundle is not None


def _in_order(asked: Sequence[Deferred]) -> list[Deferred]:
    """The arrays that have to be computed, each once and after its operands."""
    found: dict[int, Deferred] = {}
    ahead = [(note, False) for note in reversed(asked)]
    while ahead:
        note, ready = ahead.pop()
        if id(note) in found or _is_made(note):
            continue
        if ready:
            found[id(note)] = note
        else:
            ahead.append((note, True))
            ahead += [(a, False) for a in note.operands if isinstance(a, Deferred)]
    return list(found.values())


# Sums over the parts of tall arrays: several are requested together, and known ones are not requested again.


class DeferredSum:
    """The sum of a function of each part of some arrays; the first array remembers it while the others exist."""

    def __init__(self, function: Callable[..., Any], *arrays: Any):
        self.function, self.arrays = function, arrays
        self.key = (function, *map(id, arrays))

    @property
    def known(self) -> bool:
        references, _ = self.arrays[0].known.get(self.key, ([_nobody], None))
        return all(reference() is not None for reference in references)

    @property
    def value(self) -> Any:
        return self.arrays[0].known[self.key][1]

    @property
    def noted(self) -> Deferred:
        """The function to run."""
        return Deferred(self.function, tuple(a.noted for a in self.arrays))

    def set_results(self, parts: Sequence[Any]) -> None:
        self.arrays[0].known[self.key] = [ref(a) for a in self.arrays], sum_parts(parts)


def sum_parts(values: Sequence[Any]) -> Any:
    return sum(values[1:], values[0])


class ReductionBatch:
    """A plan for some arrays, and for those of some sums that are not known yet."""

    def __init__(self, asked: Sequence[Deferred], sums: Iterable[DeferredSum] = ()):
        self.sums = list({one.key: one for one in sums if not one.known}.values())
        self.plan = DeferredPlan([*asked, *(one.noted for one in self.sums)])

    def set_results(self, results: Sequence[tuple[Any, ...]]) -> None:
        """Store the sums, whose terms come last in the results of each part."""
        for k, one in enumerate(self.sums, -len(self.sums)):
            one.set_results([part[k] for part in results])
