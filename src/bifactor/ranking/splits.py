"""Splits of positives: training data, known items of the evaluated users, and the items that should be found."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from bifactor.arrays import Array
from bifactor.arrays.sparse import coordinates, require_sound
from bifactor.errors import InputError
from bifactor.validation import indices, is_count, require_finite, require_seed

LARGEST = 2**62
"""Largest users × items: the position of a pair in the whole matrix has to fit into an integer."""

UNKNOWN = 2**31
"""Largest number of users or items if no shape is given."""


def coordinates_of(data: Any, name: str, shape: tuple[int, int] | None = None) -> Any:
    """Positives as given, as a coo_array; `data` is a sparse matrix, or a pair of vectors (rows, cols).

    A pair without a shape gives the smallest matrix that contains it. Values must be ≥ 0; they are 1 for a pair.
    """
    if sparse.issparse(data):
        found = coordinates(data, name)
    elif isinstance(data, tuple) and len(data) == 2:
        found = _from_pair(*data, name, shape)
    else:
        raise InputError(
            f"{name} has type {type(data).__name__}. Pass a sparse matrix of users × items or a tuple (rows, cols)."
        )
    if shape is not None and found.shape != shape:
        raise InputError(f"{name} has shape {found.shape}, not {shape}. Pass matrices of the same users and items.")
    if found.shape[0] * found.shape[1] > LARGEST:
        raise InputError(f"{name} has shape {found.shape}, which is too large. Number users and items from 0.")
    if found.dtype.kind not in "biuf":
        raise InputError(f"{name} has values of type {found.dtype}. Pass numbers, such as 1 for each positive.")
    require_finite(found.data, name, "Pass positives only, with finite values.")
    if np.any(found.data < 0):
        raise InputError(f"{name} contains {found.data.min():g}, a negative value. Pass positives only.")
    return found


def _from_pair(rows: Any, cols: Any, name: str, shape: tuple[int, int] | None) -> Any:
    m, n = (UNKNOWN, UNKNOWN) if shape is None else shape
    i, j = indices(rows, f"{name}: rows", m), indices(cols, f"{name}: cols", n)
    if i.size != j.size:
        raise InputError(f"{name} has {i.size} rows and {j.size} columns. Pass one of each for every positive.")
    smallest = int(i.max(initial=-1)) + 1, int(j.max(initial=-1)) + 1
    return sparse.coo_array((np.ones(i.size), (i, j)), shape=smallest if shape is None else shape)


def positives(data: Any, name: str, shape: tuple[int, int] | None = None) -> Any:
    """The positives as a csr_array: sorted, without stored zeros, values of repeated pairs added."""
    if isinstance(data, sparse.csr_array) and shape in (None, data.shape):
        require_sound(data, name)
        if data.has_canonical_format and data.dtype.kind in "iuf" and np.all((data.data > 0) & np.isfinite(data.data)):
            return data  # as splits make them
    matrix = sparse.csr_array(coordinates_of(data, name, shape))
    if matrix.data.dtype.kind == "b":
        matrix = matrix.astype(np.float64)
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    return matrix


def require_some(matrix: Any, name: str) -> None:
    if matrix.nnz == 0:
        raise InputError(f"{name} contains no positives. Pass at least one pair of a user and an item.")


def member(matrix: Any, ids: Array) -> Array:
    """Mask of the ids[i, k] that are stored in row i of a sorted csr_array; -1 never is."""
    items, counts = matrix.shape[1], np.diff(matrix.indptr)
    keys = np.repeat(np.arange(matrix.shape[0], dtype=np.int64), counts) * items + matrix.indices
    wanted = np.arange(matrix.shape[0], dtype=np.int64)[:, None] * items + ids
    if keys.size == 0:
        return np.zeros(ids.shape, bool)
    places = np.minimum(np.searchsorted(keys, wanted.ravel()), keys.size - 1)
    # The key of -1 equals that of the last item of the row above.
    return (keys[places].reshape(ids.shape) == wanted) & (ids >= 0)


def without(matrix: Any, other: Any) -> Any:
    """The pairs of one matrix that are not in the other."""
    rest = matrix - matrix.multiply(other != 0)
    rest.eliminate_zeros()
    return sorted_rows(rest)


def sorted_rows(matrix: Any) -> Any:
    matrix = sparse.csr_array(matrix)
    matrix.sort_indices()
    return matrix


SHARES = (8, 1, 1)


@dataclass(frozen=True, eq=False)
class Split:
    """Positives in parts, as SciPy's csr_array. Values of the data are kept.

    Attributes
    ----------
    train : users × items
        Data that a model is fitted to.
    known : evaluated users × items
        Known items of the evaluated users. They should not be recommended.
    test : evaluated users × items
        Items that should be found.
    users : array, optional
        Rows of the evaluated users in `train`. None for new users, who are not in `train` and whose histories in
        `known` are folded in.
    validation : Split, optional
        A split for choosing settings, with the same `train`.
    """

    train: Any
    known: Any
    test: Any
    users: Array | None = None
    validation: "Split | None" = None

    def __post_init__(self) -> None:
        for name in ("train", "known", "test"):
            object.__setattr__(self, name, positives(getattr(self, name), name))
        if self.known.shape != self.test.shape or self.train.shape[1] != self.test.shape[1]:
            shapes = f"{self.train.shape}, {self.known.shape} and {self.test.shape}"
            advice = "Pass the same items in all, and the same users in known and test."
            raise InputError(f"train, known and test have shapes {shapes}. {advice}")
        if self.users is not None:
            users = indices(self.users, "users", self.train.shape[0])
            if users.size != self.test.shape[0]:
                fact = f"There are {users.size} users for {self.test.shape[0]} rows of test."
                raise InputError(f"{fact} Pass one user for each row.")
            object.__setattr__(self, "users", users)

    def __repr__(self) -> str:
        who = "new users" if self.users is None else "users"
        sizes = f"train {self.train.nnz:,}, known {self.known.nnz:,}, test {self.test.nnz:,}"
        return f"Split({sizes} of {self.test.shape[0]:,} {who} and {self.test.shape[1]:,} items)"


def by_entry(data: Any, shares: Sequence[float] = SHARES, seed: int = 0) -> Split:
    """Split the positives of each user at random, in the proportion train : validation : test, or train : test.

    Numbers are rounded down, but at least one positive of a user is in the test part, then one in the validation part,
    as long as one is left for `train`. The validation part is known in the test, although it is not fitted to.

    Parameters
    ----------
    data : SciPy sparse matrix of users × items, or (rows, cols)
        The positives.
    shares : two or three positive numbers
        The proportion train : validation : test, or train : test.
    seed : int
        Seed of the random split.
    """
    require_seed(seed)
    whole, parts = _some(data), _shares(shares)
    counts = np.diff(whole.indptr)
    taken = _held_out(counts, parts[1:])
    place, owner = _shuffled(whole, np.random.default_rng(seed))
    ends = np.cumsum(taken[::-1], axis=0)  # test first, then validation
    part = len(parts) - 1 - np.sum(place >= ends[:, owner], axis=0)
    return _of_the_same_users([_chosen(whole, part == k) for k in range(len(parts))], np.arange(whole.shape[0]))


def by_user(data: Any, users: Sequence[float] | float = (0.1, 0.1), known: float = 0.8, seed: int = 0) -> Split:
    """Hold out users at random for validation and test, who are not in `train`: strong generalisation.

    For each of them a share of the positives is known and the rest should be found, at least one of each. Users with
    one positive stay in `train`. An item that no user in `train` has cannot be found.

    Parameters
    ----------
    data : SciPy sparse matrix of users × items, or (rows, cols)
        The positives.
    users : two numbers, or one
        For validation and test, or for the test alone. Integers are numbers of users, others are shares of all users.
    known : float
        Share of the positives of these users that is known.
    seed : int
        Seed of the random choices.
    """
    require_seed(seed)
    whole, rng = _some(data), np.random.default_rng(seed)
    if isinstance(known, bool) or not isinstance(known, (int, float)) or not 0 < known < 1:
        raise InputError(f"known={known!r} is not between 0 and 1. Choose the share to fold in, such as 0.8.")
    counts = np.diff(whole.indptr)
    wanted = _numbers(users, whole.shape[0])
    able = rng.permutation(np.flatnonzero(counts >= 2))
    if sum(wanted) > able.size or sum(wanted) >= np.count_nonzero(counts):
        raise InputError(
            f"{sum(wanted)} users should be held out, but {able.size} have two positives or more, and some must stay "
            "in train. Hold out fewer users."
        )
    parts = [np.sort(chosen) for chosen in np.split(able[: sum(wanted)], np.cumsum(wanted)[:-1])]
    stay = np.setdiff1d(np.arange(whole.shape[0]), able[: sum(wanted)])
    train, split = whole[stay], None
    for part in parts:
        split = Split(train, *_folded(whole[part], float(known), rng), validation=split)
    assert split is not None
    return split


def by_time(data: Any, times: Any, shares: Sequence[float] = SHARES) -> Split:
    """Split by time: the earliest positives of all users in `train`, later ones for validation, the last for the test.

    Positives with equal times stay together, in the earlier part. Items that a user had before are not part of later
    parts, and users without positives in `train` are left out.

    Parameters
    ----------
    data : SciPy sparse matrix of users × items, or (rows, cols)
        The positives. A (user, item) pair may occur several times.
    times : numbers or dates
        One for each positive, in the order of the vectors or of `data.tocoo()`.
    shares : two or three positive numbers
        The proportion train : validation : test, or train : test.
    """
    events, parts = coordinates_of(data, "data"), _shares(shares)
    require_some(events, "data")
    moments = _moments(times, events.nnz)
    order = np.sort(moments)
    last = np.ceil(np.cumsum(parts)[:-1] * moments.size - 1e-9).astype(np.int64) - 1
    part = np.sum(moments[:, None] > order[np.maximum(last, 0)], axis=1)
    found: list[Any] = []
    for k in range(len(parts)):
        chosen = part == k
        own = sparse.coo_array((events.data[chosen], (events.row[chosen], events.col[chosen])), shape=events.shape)
        own = positives(own, "data")
        found.append(own if k == 0 else without(own, sum(found[1:], found[0])))
    users = np.flatnonzero(np.diff(found[0].indptr))
    return _of_the_same_users(found, users)


def _of_the_same_users(parts: list[Any], users: Array) -> Split:
    """Split from the parts for train, validation (optional) and test, which have the same rows."""
    train, *middle, test = parts
    known = train[users]
    if not middle:
        return Split(train, known, test[users], users)
    validation = Split(train, known, middle[0][users], users)
    return Split(train, known + middle[0][users], test[users], users, validation)


def _folded(matrix: Any, known: float, rng: np.random.Generator) -> tuple[Any, Any]:
    """Known positives of new users, and those that should be found."""
    place, owner = _shuffled(matrix, rng)
    looked_for = _held_out(np.diff(matrix.indptr), np.array([1 - known]))[0][owner] > place
    return _chosen(matrix, ~looked_for), _chosen(matrix, looked_for)


def _held_out(counts: Array, shares: Array) -> Array:
    """Number of positives of each user in each share; if there are too few, the last share is filled first."""
    taken, left = np.empty((shares.size, counts.size), np.int64), np.maximum(counts - 1, 0)  # one stays
    for k in reversed(range(shares.size)):
        # A product such as (1 − 0.8)·5 is rounded to less than 1.
        own = np.floor(shares[k] * counts * (1 + 1e-12)).astype(np.int64)
        taken[k] = np.minimum(np.maximum(own, 1), left)
        left = left - taken[k]
    return taken


def _shuffled(matrix: Any, rng: np.random.Generator) -> tuple[Array, Array]:
    """For each stored entry, its place in a random order of its row, and its row."""
    owner = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
    order = np.lexsort((rng.random(matrix.nnz), owner))
    place = np.empty(matrix.nnz, np.int64)
    place[order] = np.arange(matrix.nnz) - matrix.indptr[:-1][owner]
    return place, owner


def _chosen(matrix: Any, chosen: Array) -> Any:
    """The matrix with some of its stored entries."""
    before = np.concatenate([[0], np.cumsum(chosen)])
    return sparse.csr_array((matrix.data[chosen], matrix.indices[chosen], before[matrix.indptr]), shape=matrix.shape)


def _some(data: Any) -> Any:
    whole = positives(data, "data")
    require_some(whole, "data")
    return sorted_rows(whole)


def _shares(shares: Any) -> Array:
    each = np.asarray(shares, dtype=np.float64) if np.ndim(shares) == 1 else np.empty(0)
    if each.size not in (2, 3) or not np.all(np.isfinite(each)) or each.min() <= 0:
        raise InputError(f"shares={shares!r} is not a sequence of two or three numbers > 0. Pass e.g. (8, 1, 1).")
    return each / each.sum()


def _numbers(users: Any, total: int) -> list[int]:
    each = [users] if np.ndim(users) == 0 else list(users)
    counts = [_number(one, total) for one in each]
    if len(counts) not in (1, 2):
        raise InputError(f"users={users!r} has {len(counts)} numbers. Pass one for validation and one for the test.")
    return counts


def _number(users: Any, total: int) -> int:
    if is_count(users, 1):
        return int(users)
    if isinstance(users, float) and 0 < users < 1:
        return max(1, int(users * total))
    raise InputError(f"users={users!r} is not possible. Pass an integer ≥ 1, or a share between 0 and 1.")


def _moments(times: Any, size: int) -> Array:
    found = np.asarray(times)
    if found.shape != (size,) or found.dtype.kind not in "iufM":
        raise InputError(
            f"times has dtype {found.dtype} and shape {found.shape} for {size} positives. Pass one number or date each."
        )
    if found.dtype.kind in "fM" and np.any(np.isnan(found) if found.dtype.kind == "f" else np.isnat(found)):
        raise InputError("times contains missing values. Leave those positives out.")
    return found
