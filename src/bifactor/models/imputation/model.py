"""A fitted table of columns of any kind: imputation of missing cells, probabilities of levels, and draws."""

from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from typing import Any, NamedTuple, Self

import numpy as np
from scipy.special import ndtr

from bifactor.arrays import Array
from bifactor.data.column_types import DAY, INTEGERS, KEEP, NUMBER, ORDINAL, STEPS, ColumnSpec
from bifactor.errors import InputError
from bifactor.models.factor_analysis.fit import FactorModel
from bifactor.models.imputation.decoding import ColumnDecoder, LevelDecoder, Score, fit_decoder
from bifactor.models.imputation.encoding import Schema, TableEncoding
from bifactor.models.imputation.factors import OnRound, TableFactors
from bifactor.models.imputation.forests import FEWEST, Forests
from bifactor.models.imputation.stacking import HeldOut, Stack
from bifactor.running.result import Status
from bifactor.validation import is_at_least_zero

# Errors of the cells of a table, drawn jointly: cells of a row share its scores, and all rows share the loadings.


class Errors(NamedTuple):
    """Errors of codes, or of normal scores if used, n × q; and as numbers between 0 and 1, by their distribution."""

    numbers: Array
    uniform: Array
    offsets: Array | None
    """Normal scores of numbers minus those of their expected values; None without normal scores."""


@dataclass(frozen=True, eq=False)
class Drawing:
    """One draw of the loadings, for all rows."""

    factors: TableFactors
    model: FactorModel
    loadings: tuple[Array, Array]

    @classmethod
    def of(cls, factors: TableFactors, rng: np.random.Generator) -> Self:
        model = factors.plain if factors.scores is None else factors.scores
        return cls(factors, model, model.sample_loadings(rng))

    def errors(self, X: Array, rng: np.random.Generator) -> Errors:
        """Random differences between cells and their predictions by the model."""
        layout, scored = self.factors.layout, self.factors.scores is not None
        rows = self.model.rows(layout.encode(X, scores=scored))
        middle, variance = self.model.predict(rows)
        drawn = self.model.sample(rows, rng, self.loadings)
        numbers, uniform = drawn - middle, ndtr((drawn - middle) / np.sqrt(variance))
        offsets = None
        if scored:
            offsets = np.zeros_like(middle)
            for place, code in layout.numbers:
                z = middle[:, place]
                offsets[:, place] = z - code.score_of(code.expected(z, variance[:, place]))
        return Errors(numbers, uniform, offsets)


# A fitted table: imputation of missing cells, probabilities of levels, and draws.

FAST, FULL = "fast", "full"
EFFORTS = FAST, FULL

ROUNDS, TOLERANCE = 100, 5e-3
"""Defaults for the factors. A fifth of the tolerance changed errors by less than 0.5 %, and took twice as long."""

CHUNK = 1 << 14
"""Rows filled in at a time."""


@dataclass(frozen=True, eq=False)
class Predictor:
    """Factors of a table and corrections to their predictions."""

    factors: TableFactors
    forests: Forests | None
    stack: Stack

    def predict(self, X: Array, column: int | None = None) -> Array:
        """Predictions of missing cells, in standard deviations; with `column`, corrected in that column only."""
        plain, scores = self.factors.encoded(X)
        guess = self.factors.guess(plain, scores)
        corrections = [guess.apart[:, :, None]]
        if self.forests is not None:
            holes = np.isnan(plain)
            wanted = holes if column is None else holes & (self.factors.layout.own == column)
            completed = np.where(holes, guess.middle, plain)
            corrections.append(self.forests.correct(completed, guess.middle, wanted))
        return self.stack.corrected(guess.middle, np.concatenate(corrections, axis=2))


@dataclass(frozen=True, eq=False)
class TableModel:
    """A predictor of all columns that vary, and an answer for each of them."""

    layout: TableEncoding
    schema: Schema
    constants: Array
    """Values of constant columns, NaN for others."""
    predictor: Predictor | None
    """None if no column varies."""
    answers: dict[int, ColumnDecoder]
    scores: dict[int, Score]
    status: Status
    """How the fit ended; after Ctrl-C, the model is that of the factors so far, without forests."""

    @classmethod
    def fit(
        cls,
        X: Array,
        schema: Schema,
        effort: str = FULL,
        *,
        seed: int = 0,
        max_iter: int = ROUNDS,
        tol: float = TOLERANCE,
        on_round: OnRound = lambda *_: False,
    ) -> Self:
        """Fit to X, n × p with NaN for missing cells: numbers, or indices of levels in columns of any other kind."""
        layout = TableEncoding.of(X, schema)
        first = X[np.isnan(X).argmin(axis=0), np.arange(X.shape[1])]
        constants = np.where([code is None for code in layout.codes], first, np.nan)
        if layout.width == 0:
            return cls(layout, schema, constants, None, {}, {}, Status.SETTLED)
        factors = TableFactors.of(layout, X, effort == FULL, seed, max_iter, tol, on_round)
        ended, base = factors.status, (layout, schema, constants)
        forests = effort == FULL and ended is not Status.INTERRUPTED
        try:
            return cls(*base, *_decoded(factors, X, seed, forests), ended)
        except KeyboardInterrupt:  # what is left without forests takes a pass or two
            return cls(*base, *_decoded(factors, X, seed, False), Status.INTERRUPTED)

    def fill(self, X: Array) -> Array:
        """The table with missing cells filled in, except in columns that were empty in the fit."""
        found = np.where(np.isnan(X), self.constants, X)
        for rows, middle in self._chunks(X):
            for j, holes, span in self._holes(X[rows]):
                found[rows[holes], j] = self.answers[j].value(middle[holes, span])
        return found

    def probabilities(self, X: Array, column: int) -> Array:
        """Probabilities of the levels of a column from the rest of each row; its own cells are not used."""
        found = np.zeros((len(X), self.schema.sizes[column]))
        answer = self.answers.get(column)
        if not isinstance(answer, LevelDecoder):
            if np.isnan(self.constants[column]):
                return found + 1 / found.shape[1]
            found[:, int(self.constants[column])] = 1
            return found
        hidden = X.copy()
        hidden[:, column] = np.nan
        for rows, middle in self._chunks(hidden, column):
            found[rows] = answer.levels(middle[:, self.layout.spans[column]])
        return found

    def draws(self, X: Array, count: int, seed: int) -> Iterator[Array]:
        """Tables with missing cells drawn at random, jointly, each with its own draw of loadings."""
        rng = np.random.default_rng(seed)
        chunks = list(self._chunks(X))
        for _ in range(count):
            found = np.where(np.isnan(X), self.constants, X)
            drawing = None if self.predictor is None else Drawing.of(self.predictor.factors, rng)
            for rows, middle in chunks:
                assert drawing is not None
                numbers, uniform, offsets = drawing.errors(X[rows], rng)
                for j, holes, span in self._holes(X[rows]):
                    at = holes, span.start
                    offset = None if offsets is None else offsets[at]
                    found[rows[holes], j] = self.answers[j].drawn(middle[holes, span], numbers[at], uniform[at], offset)
            yield found

    def _chunks(self, X: Array, column: int | None = None) -> Iterator[tuple[Array, Array]]:
        """Rows with missing cells, some at a time, and predictions of their codes."""
        rows = np.flatnonzero(np.isnan(X).any(axis=1))
        for start in range(0, len(rows) if self.predictor is not None else 0, CHUNK):
            assert self.predictor is not None
            part = rows[start : start + CHUNK]
            yield part, self.predictor.predict(X[part], column)

    def _holes(self, X: Array) -> Iterator[tuple[int, Array, slice]]:
        """Columns with missing cells in these rows, masks of these cells, and the encoded columns."""
        for j, _, span in self.layout.places:
            holes = np.isnan(X[:, j])
            if holes.any():
                yield j, holes, span


def _decoded(
    factors: TableFactors, X: Array, seed: int, forests: bool
) -> tuple[Predictor, dict[int, ColumnDecoder], dict[int, Score]]:
    """Corrections of the factors, and the answers of columns and their scores, all fitted to held-out cells."""
    layout, rng = factors.layout, np.random.default_rng(seed)
    held_out = HeldOut.of(factors, X, rng)
    grown, corrections = None, [held_out.apart[:, :, None]]
    if forests and len(held_out.rows) >= FEWEST:
        grown, told = Forests.of(layout, held_out, seed)
        corrections.append(told)
    stack, predicted = Stack.of(layout, held_out, np.concatenate(corrections, axis=2), rng)
    answers, scores = {}, {}
    for j, code, span in layout.places:
        rows = held_out.mask[:, span.start]
        middle, x = predicted[rows, span], X[held_out.rows[rows], j]
        answers[j], score = fit_decoder(code, middle, x, _shrinkage(held_out, predicted, span.start), rng)
        if score is not None:
            scores[j] = score
    return Predictor(factors, grown, stack), answers, scores


def _shrinkage(held_out: HeldOut, predicted: Array, place: int) -> float:
    """Factor by which corrections reduce the standard deviation of the errors of draws, in hidden cells."""
    rows = held_out.mask[:, place]
    truth, drawn = held_out.known[rows, place], held_out.middle[rows, place] + held_out.apart[rows, place] / 2
    before, after = np.mean((truth - drawn) ** 2), np.mean((truth - predicted[rows, place]) ** 2)
    return float(np.sqrt(np.clip(after / before, 0.04, 1))) if before > 0 else 1.0


SHOWN = 10
"""Most columns that a note lists."""

WHOLE = np.iinfo(np.int64)


def metric_of(form: ColumnSpec) -> str:
    """Metric of the errors of a column: the share of wrong classes, unless it has numbers or grades."""
    return {NUMBER: "rmse in days" if form.step else "rmse", ORDINAL: "mae"}.get(form.kind, "errors")


@dataclass(frozen=True, eq=False)
class FittedTable:
    """A fitted table, column by column."""

    forms: tuple[ColumnSpec, ...]
    model: TableModel
    known: tuple[int, ...]
    """Numbers of known cells of each column, and of missing cells."""
    holes: tuple[int, ...]

    @classmethod
    def fit(cls, forms: Sequence[ColumnSpec], columns: Sequence[Array], bounds: Any = None, **options: Any) -> Self:
        """Fit to the cells of each column; `options` are those of `TableModel.fit`."""
        forms = tuple(forms)
        used = [form for form in forms if form.kind != KEEP]
        schema = Schema(
            tuple(form.kind for form in used), tuple(len(form.levels) for form in used), _bounds(used, bounds)
        )
        X = _codes(forms, columns)
        if not used:
            raise InputError(
                "All columns of X are kept, as is done for words that hardly repeat. Pass their kinds in columns=."
            )
        if np.isnan(X).all():
            raise InputError("No entry of X is known. Pass at least one known entry.")
        model = TableModel.fit(X, schema, **options)
        counts = [int(np.count_nonzero(~_missing(cells))) for cells in columns]
        return cls(forms, model, tuple(counts), tuple(len(c) - k for c, k in zip(columns, counts, strict=True)))

    def fill(self, columns: Sequence[Array]) -> list[tuple[Array, Array]]:
        """Masks of the cells of each column that are filled in, and their values; none in columns that were empty."""
        return self._back(columns, self.model.fill(_codes(self.forms, columns)))

    def draws(self, columns: Sequence[Array], count: int, seed: int) -> Iterator[list[tuple[Array, Array]]]:
        """The same, drawn at random."""
        for X in self.model.draws(_codes(self.forms, columns), count, seed):
            yield self._back(columns, X)

    def probabilities(self, columns: Sequence[Array], place: int) -> Array:
        """Probabilities of the levels of a column, from the rest of each row."""
        among = sum(form.kind != KEEP for form in self.forms[:place])
        return self.model.probabilities(_codes(self.forms, columns), among)

    @property
    def scores(self) -> list[Score | None]:
        """Score of each column, in days for times; None for columns that are kept, constant or empty."""
        places = iter(range(len(self.forms)))
        found = [None if form.kind == KEEP else self.model.scores.get(next(places)) for form in self.forms]
        return [_in_days(score) if form.step else score for form, score in zip(self.forms, found, strict=True)]

    def unfilled(self, told: Container[Any]) -> str:
        """A note about kept columns with missing cells, unless it was `told` to keep them; empty if there are none."""
        pairs = zip(self.forms, self.holes, strict=True)
        found = {form.name: holes for form, holes in pairs if form.kind == KEEP and holes and form.name not in told}
        if not found:
            return ""
        names = ", ".join(f"{name} ({holes:,})" for name, holes in list(found.items())[:SHOWN])
        more = ", …" if len(found) > SHOWN else ""
        what = f"Missing cells of text that rarely repeats stay empty: {names}{more}."
        return f"{what} Declare such a column as a category to fill them, or as kept."

    def _back(self, columns: Sequence[Array], X: Array) -> list[tuple[Array, Array]]:
        found, codes = [], iter(X.T)
        for form, cells in zip(self.forms, columns, strict=True):
            holes = np.zeros(len(cells), bool)
            if form.kind == KEEP:
                found.append((holes, np.empty(0)))
                continue
            told = next(codes)
            holes = _missing(cells) & ~np.isnan(told)
            found.append((holes, form.values(told[holes])))
        return found


def _codes(forms: Sequence[ColumnSpec], columns: Sequence[Array]) -> Array:
    pairs = zip(forms, columns, strict=True)
    codes = [form.codes(cells) for form, cells in pairs if form.kind != KEEP]
    return np.column_stack(codes) if codes else np.empty((0, 0))


def _missing(cells: Array) -> Array:
    if cells.dtype == object:
        return np.array([cell is None for cell in cells.tolist()], bool)
    return np.isnan(cells)


def _bounds(forms: Sequence[ColumnSpec], given: dict[Any, Any] | None) -> dict[int, tuple[float, float]]:
    """Bounds by the index of columns."""
    found = {}
    places = {form.name: k for k, form in enumerate(forms)}
    for name, ends in (given or {}).items():
        if name not in places or forms[places[name]].kind != NUMBER:
            raise InputError(f"bounds names {name!r}, which is not a column of numbers. Leave it out.")
        time = forms[places[name]].step > 0
        try:
            low, high = (_moment(end) if time else float(end) for end in ends)
        except (TypeError, ValueError):
            low, high = np.nan, np.nan
        if not low < high:
            raise InputError(
                f"bounds of {name!r} are {ends!r}. Pass two increasing {'times' if time else 'numbers'}, such as "
                f"{'(datetime(2020, 1, 1), datetime(2021, 1, 1))' if time else '(0, 120)'}."
            )
        like = forms[places[name]].like
        unit = forms[places[name]].step or int(isinstance(like, INTEGERS))
        if unit:  # values are rounded
            low, high = unit * np.ceil(low / unit), unit * np.floor(high / unit)
        if isinstance(like, Decimal):
            low, high = _decimal(low, like, ROUND_CEILING), _decimal(high, like, ROUND_FLOOR)
        if low > high or (unit and (low > WHOLE.max or high < WHOLE.min)):
            what = f"whole {STEPS[int(unit)]}" if time else "integers" if unit else f"decimals like {like}"
            raise InputError(f"Column {name!r} holds {what}, none of which is within its bounds {ends!r}. Widen them.")
        found[places[name]] = low, high
    return found


def _decimal(end: float, like: Decimal, rounding: str) -> float:
    """An end with as many places as the decimals of a column."""
    if not abs(end) < 2.0**53:  # it has none
        return end
    places = max(-int(like.as_tuple().exponent), 0)
    return float(Decimal(repr(end)).quantize(Decimal(1).scaleb(-places), rounding))


def _moment(end: Any) -> float:
    """A duration, or a time since 1970, in microseconds."""
    if isinstance(end, float):
        return end  # infinite
    length = isinstance(end, (timedelta, np.timedelta64))
    told = np.timedelta64(end, "us") if length else np.datetime64(end, "us")
    return float(told.astype(np.int64)) if not np.isnat(told) else np.nan


def _in_days(score: Score | None) -> Score | None:
    return None if score is None else Score(score.error / DAY, score.baseline / DAY, score.cells)


def require_tolerance(tol: Any) -> float:
    """The tolerance; raises `InputError` unless it is a number ≥ 0."""
    if not is_at_least_zero(tol):
        raise InputError(f"tol={tol!r} is not a number ≥ 0. Use 0 to continue until max_iter.")
    return float(tol)
