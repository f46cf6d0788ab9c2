"""Laws of losses."""

import numpy as np

from bifactor.arrays import Array
from bifactor.losses import Loss
from bifactor.testing.laws import close, true


def check_loss(loss: Loss, y: Array, z_max: float = 1e4) -> None:
    """Check derivatives against differences, convexity, the smoothness bound, and finite values up to |z| = `z_max`.

    If the loss has a `pointwise` form, check that it is the same function. `y` holds some targets of the loss.
    """
    y = np.asarray(y, dtype=np.float64)
    name = type(loss).__name__
    loss.targets.check(y, name)
    z = np.linspace(-8.0, 8.0, 161)[:, None] + np.zeros_like(y)
    bend = loss.curvature(z, y)
    h = 1e-5
    difference = (loss.value(z + h, y) - loss.value(z - h, y)) / (2 * h)
    close(f"{name}: gradient is the derivative of value", loss.gradient(z, y), difference, 1e-6)
    difference = (loss.gradient(z + h, y) - loss.gradient(z - h, y)) / (2 * h)
    # A gradient may have kinks, which differences straddle.
    smooth = np.abs(loss.curvature(z + h, y) - loss.curvature(z - h, y)) < 1e-2
    close(f"{name}: curvature is the derivative of gradient", bend[smooth], difference[smooth], 1e-5)
    true(f"{name}: curvature ≥ 0", np.all(bend >= 0))
    if loss.smoothness is not None:
        true(f"{name}: curvature ≤ smoothness", np.all(bend <= loss.smoothness * (1 + 1e-12)))
    true(f"{name}: mean is finite", np.isfinite(loss.mean(z)).all())
    for dtype in (np.float32, np.float64):
        _check_far_out(loss, y.astype(dtype), z_max)
        _check_pointwise(loss, z.astype(dtype), np.broadcast_to(y, z.shape).astype(dtype))


def _check_far_out(loss: Loss, y: Array, z_max: float) -> None:
    name, dtype = type(loss).__name__, y.dtype
    z = np.array([-z_max, -100.0, 0.0, 100.0, z_max], dtype=dtype)[:, None] + np.zeros_like(y)
    for part in (loss.value, loss.gradient, loss.curvature):
        with np.errstate(over="raise", invalid="raise", divide="raise"):
            got = part(z, y)
        true(f"{name}: {part.__name__} is finite at |z| = {z_max:g} in {dtype}", np.isfinite(got).all())
        true(f"{name}: {part.__name__} keeps {dtype}", got.dtype == dtype)


def _check_pointwise(loss: Loss, z: Array, y: Array) -> None:
    pointwise = loss.pointwise
    if pointwise is None:
        return
    name, dtype = type(loss).__name__, z.dtype
    parameter = dtype.type(loss.parameter(dtype))
    got = np.array([pointwise(*pair, parameter) for pair in zip(z.flat, y.flat, strict=True)])
    tol = 1e3 * float(np.finfo(dtype).eps)
    true(f"{name}: pointwise gives (ℓ, ℓ′, ℓ″)", got.shape == (z.size, 3))
    for number, part in zip(got.T, (loss.value, loss.gradient, loss.curvature), strict=True):
        close(f"{name}: pointwise gives {part.__name__} in {dtype}", number, part(z, y).ravel(), tol)
