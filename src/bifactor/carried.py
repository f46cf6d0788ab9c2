"""Gram matrices of factors that are updated in steps, as measurements are: those of U′ = U + aD follow from U and D."""

from dataclasses import dataclass, replace
from typing import Self

from bifactor.arrays import Array, herm

Grams = tuple[Array, Array]
"""The Gram matrices of U and V, r×r, in double precision."""

LONGEST = 25
"""The number of steps after which Gram matrices are computed again."""


@dataclass(frozen=True, eq=False)
class Moved:
    """U′ = U + aD and V′ = V + aE, given by the Gram matrices of x, of x with d, and of d."""

    step: float
    start: Grams
    cross: Grams
    own: Grams
    age: int
    """The number of consecutive steps, including this one, in which Gram matrices were updated."""

    def to(self) -> Grams:
        """U′ᴴU′ and V′ᴴV′."""
        a = self.step
        parts = zip(self.start, self.cross, self.own, strict=True)
        left, right = (G + a * (C + herm(C)) + a * a * D for G, C, D in parts)
        return left, right


class Carried:
    """The step that led to factors, stored outside the fields, so that `replace` drops it."""

    @property
    def moved(self) -> Moved | None:
        """The step that led to these factors, if it is known."""
        return self.__dict__.get("_moved")

    @property
    def carried(self) -> int:
        """The number of consecutive steps in which Gram matrices were updated."""
        return self.__dict__.get("_carried", 0)

    def known_as(self, moved: Moved) -> None:
        """Store the step that led to these factors, and update Gram matrices, unless this was done too often."""
        self.__dict__["_moved"] = moved
        if moved.age < LONGEST:
            self.carrying(moved.to(), moved.age)

    def carrying(self, grams: Grams, age: int) -> Self:
        """These factors with Gram matrices that were updated in this many steps."""
        self.__dict__.update(wide_grams=grams, _carried=age)
        return self

    @property
    def fresh(self) -> Self:
        """The same factors without stored steps and Gram matrices."""
        return replace(self)  # type: ignore[type-var]
