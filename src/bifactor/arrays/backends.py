"""Arrays of several libraries: their library and device, and conversions between them.

Only this module imports array-api-compat.
"""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import array_api_compat
import array_api_compat.numpy
import numpy as np
from numpy.typing import NDArray

from bifactor.errors import InputError

Array = NDArray[Any]
"""An array of any library that follows the array standard; type checkers see NumPy's, which most users have."""

HOST_ARRAY = np.empty(0)
"""A NumPy array, the default library."""


class DistributedArray(ABC):
    """A tall array whose rows are in the memory of other machines, with the operations that it brings itself.

    It follows the array standard as far as factors need it; `np.asarray` gathers its rows on this machine.
    """

    @abstractmethod
    def inner(self, other: Any) -> float:
        """Re⟨a, b⟩, in double precision."""

    @abstractmethod
    def triangular(self) -> np.ndarray:
        """R of the QR factorisation."""

    @abstractmethod
    def mean(self) -> float:
        """The mean of a vector."""

    @abstractmethod
    def largest(self) -> float: ...

    @staticmethod
    @abstractmethod
    def compute_products(inners: Sequence[tuple[Any, Any]], grams: Sequence[tuple[Any, Any]]) -> None:
        """Compute Re⟨a, b⟩ and AᵀB for some pairs of such arrays, in one round; both then know them."""


def namespace(*arrays: Array) -> Any:
    """The array namespace that all of `arrays` share."""
    if all(type(a) is np.ndarray for a in arrays):  # called dozens of times per iteration
        return array_api_compat.numpy
    return array_api_compat.array_namespace(*arrays)


def is_numpy(array: Array) -> bool:
    return type(array) is np.ndarray or array_api_compat.is_numpy_array(array)


def is_array(value: Any) -> bool:
    return array_api_compat.is_array_api_obj(value)


def is_foreign(array: Any) -> bool:
    """Whether it is an array of a library other than NumPy."""
    if type(array) is np.ndarray or not hasattr(array, "dtype"):  # called for every argument of a kernel
        return False
    return array_api_compat.is_array_api_obj(array) and not is_numpy(array)


def on_this_machine(array: Array) -> bool:
    """Whether the memory of an array is the host's."""
    return is_numpy(array) or "cpu" in str(array_api_compat.device(array)).lower()


def same_library(*arrays: Any) -> bool:
    """Whether all arrays are of one library and on one device."""
    kinds = {np.ndarray if is_numpy(a) else (type(a), str(array_api_compat.device(a))) for a in arrays}
    return len(kinds) <= 1


def library_of(array: Any) -> str:
    """The name of the library of an array."""
    name: str = namespace(array).__name__
    return name.removeprefix("array_api_compat.").partition(".")[0]


def where(array: Any) -> str:
    """The library and the device of an array, for messages."""
    return f"{library_of(array)} on {array_api_compat.device(array)}"


def to_numpy(array: Any) -> Any:
    """The array as a NumPy array: itself, a view if memory can be shared, otherwise a copy. Numbers stay numbers."""
    if type(array) is np.ndarray or isinstance(array, (float, np.generic)):
        return array
    if isinstance(array, DistributedArray):
        return np.asarray(array)
    if array_api_compat.is_torch_array(array):
        return array.detach().cpu().numpy()
    if not on_this_machine(array):
        home = namespace(array).__array_namespace_info__().default_device()
        array = array_api_compat.to_device(array, home)
    return np.asarray(array)


def to_device_of(array: np.ndarray, tall: Array) -> Array:
    """A NumPy array in the library and on the device of a tall one; a view if memory can be shared."""
    if type(tall) is np.ndarray:
        return array
    xp = namespace(tall)
    return xp.asarray(array, device=array_api_compat.device(tall))


def on_host(kernel: Callable[..., Any], *arguments: Any) -> Any:
    """The result of a NumPy kernel for arrays of another library, as arrays of that library.

    Tensors of torch on the host share their memory with NumPy in both directions. Other devices need their own kernels.
    """
    foreign = None
    for argument in arguments:
        if is_foreign(argument):
            foreign = argument
            break
    else:
        return kernel(*arguments)
    if not on_this_machine(foreign):
        raise InputError(f"There is no kernel for arrays in {where(foreign)}. Move the data to the host.")
    found = kernel(*(to_numpy(a) if is_foreign(a) else a for a in arguments))
    if isinstance(found, tuple):
        return tuple(to_device_of(part, foreign) if isinstance(part, np.ndarray) else part for part in found)
    return to_device_of(found, foreign) if isinstance(found, np.ndarray) else found


def dtype_of(array: Array) -> np.dtype:
    """The dtype of an array of any library, as NumPy names it."""
    dtype = array.dtype
    if isinstance(dtype, np.dtype):
        return dtype
    return np.dtype(str(dtype).rpartition(".")[2])


def common_dtype(*arrays: Array) -> np.dtype:
    """The common dtype of arrays."""
    return np.result_type(*(dtype_of(a) for a in arrays))


def widest(*arrays: Array) -> Array:
    """An array of the common dtype of arrays, in their library: the first of them, or an empty one."""
    dtype = common_dtype(*arrays)
    return arrays[0] if dtype_of(arrays[0]) == dtype else zeros((0,), dtype, arrays[0])


def cast(array: Array, dtype: Any) -> Array:
    """The array in another dtype, named as in NumPy; the array itself if it has that dtype."""
    if type(array) is np.ndarray:
        return array.astype(dtype, copy=False)
    xp = namespace(array)
    return xp.astype(array, getattr(xp, np.dtype(dtype).name), copy=False)


def zeros(shape: tuple[int, ...], dtype: Any, like: Array) -> Array:
    """Zeros in the library and on the device of another array; the dtype is named as in NumPy."""
    if type(like) is np.ndarray:
        return np.zeros(shape, dtype)
    xp = namespace(like)
    return xp.zeros(shape, dtype=getattr(xp, np.dtype(dtype).name), device=array_api_compat.device(like))


def copied(array: Array) -> Array:
    return np.array(array) if is_numpy(array) else namespace(array).asarray(array, copy=True)


def contiguous(array: Array) -> Array:
    return np.ascontiguousarray(array) if type(array) is np.ndarray else array


def gather(array: Array) -> Array:
    """A distributed array as a NumPy array; other arrays are unchanged."""
    return to_numpy(array) if isinstance(array, DistributedArray) else array


def empty_of(array: Array) -> Array:
    """An empty array of the same library, on the same device."""
    return array[:0, ...]


# Input from users: arrays and randomness.

DRAWN = 1 << 22
"""The number of values that are drawn in double precision at a time and converted to single."""


def floating(array: Any, what: str) -> Array:
    """A floating copy-or-view of user data: integers and booleans become float64, half becomes single.

    Arrays of other libraries stay there; everything else becomes a NumPy array.
    """
    if is_foreign(array):
        name = dtype_of(array).name
        if name in ("float32", "float64", "complex64", "complex128"):
            return array
        if np.dtype(name).kind in "biuf":
            return cast(array, np.float32 if name == "float16" else np.float64)
        raise InputError(f"{what} has dtype {name}; bifactor computes in float32, float64, complex64 or complex128.")
    try:
        a = np.asarray(array)
    except (TypeError, ValueError) as error:
        raise InputError(f"{what} is not an array of numbers ({error}). Pass a NumPy array.") from None
    if a.dtype == np.float16:
        return a.astype(np.float32)
    if a.dtype in (np.float32, np.float64, np.complex64, np.complex128):
        return a
    if a.dtype.kind in "biu":
        return a.astype(np.float64)
    raise InputError(
        f"{what} has dtype {a.dtype}; bifactor computes in float32, float64, complex64 or complex128. Convert it first."
    )


def digest(*arrays: Array) -> str:
    """A hash of the content of some arrays, the same in every process."""
    total = hashlib.blake2b(digest_size=16)
    for array in arrays:
        total.update(np.ascontiguousarray(to_numpy(array)).tobytes())
    return total.hexdigest()


def generator(rng: np.random.Generator | int | None) -> np.random.Generator:
    """The generator for `rng`: a Generator, a seed, or None for a new one. Randomness enters only here."""
    try:
        return np.random.default_rng(rng)
    except (TypeError, ValueError):
        raise InputError(
            f"rng={rng!r} is not a source of randomness. Pass a NumPy Generator, a seed ≥ 0 or None."
        ) from None


def gaussian(rng: np.random.Generator, shape: tuple[int, ...], dtype: Any) -> Array:
    """Standard normal draws; for a complex dtype both parts are drawn, with E|x|² = 1."""
    dtype = np.dtype(dtype)
    if dtype.kind == "c":
        draw = rng.standard_normal(shape) + 1j * rng.standard_normal(shape)
        return (draw / np.sqrt(2.0)).astype(dtype)
    if dtype == np.float64:
        return rng.standard_normal(shape)
    found = np.empty(shape, dtype)
    flat = found.reshape(-1)
    for start in range(0, flat.size, DRAWN):
        part = flat[start : start + DRAWN]
        part[:] = rng.standard_normal(part.size)
    return found
