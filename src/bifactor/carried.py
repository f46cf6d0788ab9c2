"""Gram matrices of factors that are carried along steps, as measurements are: U′ = U + aD has those of U and D."""

from dataclasses import dataclass, replace
from typing import Self

from bifactor.arrays import Array, herm

Grams = tuple[Array, Array]
"""Of U and of V, r×r, in double precision."""

LONGEST = 25
"""Steps after which Gram matrices are computed anew."""


@dataclass(frozen=True, eq=False)
class Moved:
    """U′ = U + aD and V′ = V + aE by Gram matrices: of x, of x with d, and of d."""

    step: float
    start: Grams
    cross: Grams
    own: Grams
    age: int
    """Steps in a row, with this one, along which Gram matrices are carried."""

    def to(self) -> Grams:
        """U′ᴴU′ and V′ᴴV′."""
        a = self.step
        parts = zip(self.start, self.cross, self.own, strict=True)
        left, right = (G + a * (C + herm(C)) + a * a * D for G, C, D in parts)
        return left, right


class Carried:
    """What factors know of the step that led to them. Nothing of it is a field: others are made without."""

    @property
    def moved(self) -> Moved | None:
        """How these came from others, where that is known."""
        return self.__dict__.get("_moved")

    @property
    def carried(self) -> int:
        """Steps in a row that Gram matrices have been carried along."""
        return self.__dict__.get("_carried", 0)

    def known_as(self, moved: Moved) -> None:
        """Note how these came from others, and carry Gram matrices along, unless that has been done for long."""
        self.__dict__["_moved"] = moved
        if moved.age < LONGEST:
            self.carrying(moved.to(), moved.age)

    def carrying(self, grams: Grams, age: int) -> Self:
        """These, with Gram matrices that have been carried along for so many steps."""
        self.__dict__.update(wide_grams=grams, _carried=age)
        return self

    @property
    def fresh(self) -> Self:
        """The same, with nothing known of them."""
        return replace(self)  # type: ignore[type-var]
