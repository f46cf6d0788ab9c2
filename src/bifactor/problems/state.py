"""Where an iteration stands: values that are passed in and returned, never changed."""

from dataclasses import dataclass, fields
from typing import Any, ClassVar, Generic, TypeVar

from bifactor.arrays import Array
from bifactor.factors import Factors


class Value:
    """A frozen dataclass that a checkpoint keeps field by field.

    Fields hold numbers, strings, None, arrays, `Factors`, tuples of these, and other values. A subclass is known by its
    name, so a run is resumed only where the solver that wrote its state is imported.
    """

    known: ClassVar[dict[str, type["Value"]]] = {}

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        Value.known[f"{cls.__module__}.{cls.__qualname__}"] = cls

    def parts(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]


class Phase(Value):
    """What a solver says of its own progress."""

    staged: ClassVar[bool] = False
    """Whether stages are still to come: until then, having come to rest is not the end."""
    at_rest: ClassVar[bool] = False
    """Whether another step would change nothing."""
    provisional: ClassVar[bool] = False
    """Whether values are those of a function that will be another one."""
    fitting: ClassVar[bool] = False
    """Whether the function is fitted along with the factors: those of the last state go with it, and with no other."""


@dataclass(frozen=True)
class Moving(Phase):
    """Nothing to report: the tests of the loop decide."""


@dataclass(frozen=True)
class Staged(Phase):
    """Stages are still to come."""

    staged = True


@dataclass(frozen=True)
class Provisional(Phase):
    """The function that is minimised will change: no later state is compared with this one."""

    staged = True
    provisional = True


@dataclass(frozen=True)
class Settled(Phase):
    """The solver's own stopping rule is met."""

    at_rest = True


@dataclass(frozen=True)
class Fitting(Moving):
    """As `Moving`, where the function is fitted too."""

    fitting = True


@dataclass(frozen=True)
class Fitted(Settled):
    """As `Settled`, where the function is fitted too."""

    fitting = True


@dataclass(frozen=True)
class Stalled(Phase):
    """No step was found that lowers the objective."""

    promised: float
    """The decrease that the last step length had promised."""
    level: float = 0.0
    """The size of the function that was searched, in whose rounding the decrease may be lost; F's counts anyway."""
    at_rest = True


@dataclass(frozen=True)
class Point(Value):
    """Factors, and there f, its gradient, and the objective F = f + the terms of a problem."""

    x: Factors
    f: float
    z: Any
    """The measurements; None where they were not kept."""
    value: float
    """F."""
    gradient: Factors
    """∇F in the factors."""
    original: tuple[float, Factors]
    """F and ∇F without the terms that a solver has added; the two above where it has added none."""


@dataclass(frozen=True)
class Nothing(Value):
    """The own state of a solver that has none."""


Own = TypeVar("Own", bound=Value, covariant=True)


@dataclass(frozen=True)
class State(Value, Generic[Own]):
    """A point, whose value is F of the problem given to `solve`, and what the solver itself carries along."""

    point: Point
    own: Own
    phase: Phase = Moving()

    @property
    def U(self) -> Array:
        return self.point.x.left

    @property
    def V(self) -> Array:
        return self.point.x.right

    @property
    def value(self) -> float:
        """F at U and V."""
        return self.point.value
