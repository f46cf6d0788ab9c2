"""The state of an iteration: values that are passed in and returned, never changed."""

from dataclasses import dataclass, fields
from typing import Any, ClassVar, Generic, TypeVar

from bifactor.arrays import Array
from bifactor.errors import InputError
from bifactor.factors import Factors


class Value:
    """A frozen dataclass that a checkpoint saves field by field.

    Fields hold numbers, strings, None, arrays, `Factors`, tuples of these, and other values. Checkpoints identify a
    subclass by its key, as in `class Momentum(Value, key="momentum")`, by default its module and name. A run can be
    resumed only if the solver that wrote its state is imported.
    """

    classes: ClassVar[dict[str, type["Value"]]] = {}
    """All subclasses by their keys."""
    key: ClassVar[str]

    def __init_subclass__(cls, key: str | None = None, **options: Any) -> None:
        super().__init_subclass__(**options)
        path = (cls.__module__, cls.__qualname__)
        cls.key = ".".join(path) if key is None else key
        other = Value.classes.setdefault(cls.key, cls)
        # A class may be defined again, as in a notebook, or copied by `dataclass(slots=True)`.
        if (other.__module__, other.__qualname__) != path:
            raise InputError(f"The key {cls.key!r} is that of {other.__module__}.{other.__qualname__}. Choose another.")
        Value.classes[cls.key] = cls

    def parts(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]


class Phase(Value, key="phase"):
    """The progress of a solver, as reported by itself."""

    staged: ClassVar[bool] = False
    """Whether further stages follow: the run then does not end when X stops changing."""
    at_rest: ClassVar[bool] = False
    """Whether another step would change nothing."""
    provisional: ClassVar[bool] = False
    """Whether the function that is minimised will still change."""
    fitting: ClassVar[bool] = False
    """Whether the function is fitted along with the factors: it then belongs to the factors of the last state only."""


@dataclass(frozen=True)
class Moving(Phase, key="moving"):
    """Nothing to report: the tests of the loop decide."""


@dataclass(frozen=True)
class Staged(Phase, key="staged"):
    """Further stages follow."""

    staged = True


@dataclass(frozen=True)
class Provisional(Phase, key="provisional"):
    """The function that is minimised will change: no later state is compared with this one."""

    staged = True
    provisional = True


@dataclass(frozen=True)
class Settled(Phase, key="settled"):
    """The solver's own stopping rule is met."""

    at_rest = True


@dataclass(frozen=True)
class Fitting(Moving, key="moving_function"):
    """Like `Moving`, if the function is fitted, too."""

    fitting = True


@dataclass(frozen=True)
class Fitted(Settled, key="settled_function"):
    """Like `Settled`, if the function is fitted, too."""

    fitting = True


@dataclass(frozen=True)
class Stalled(Phase, key="stalled"):
    """No step was found that lowers the objective."""

    promised: float
    """The decrease that was predicted for the last step length."""
    level: float = 0.0
    """The size of the function that was searched, in whose rounding the decrease may be lost; that of F counts, too."""
    at_rest = True


@dataclass(frozen=True)
class Point(Value, key="point"):
    """Factors, and the values there of f and of the objective F = f + the terms of a problem, with its gradient."""

    x: Factors
    f: float
    z: Any
    """The measurements; None if they were not kept."""
    value: float
    """F."""
    gradient: Factors
    """∇F in the factors."""
    original: tuple[float, Factors]
    """F and ∇F without the terms that a solver has added; the same as the two above if there are none."""


@dataclass(frozen=True)
class Nothing(Value, key="nothing"):
    """The state of a solver without one of its own."""


Own = TypeVar("Own", bound=Value, covariant=True)


@dataclass(frozen=True)
class State(Value, Generic[Own], key="state"):
    """A point, whose value is F of the problem given to `solve`, and the solver's own state."""

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
