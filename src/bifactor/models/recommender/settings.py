"""Settings of a model of clicks."""

from typing import Any

from bifactor.errors import InputError
from bifactor.validation import is_at_least_zero, is_count


def require_click_settings(n_components: Any, unobserved: Any, ridge: Any, item_share: Any, item_ridge: Any) -> None:
    """Raise `InputError` unless these are valid settings of a `Recommender`."""
    if unobserved != "auto" and not (is_at_least_zero(unobserved) and float(unobserved) > 0):
        raise InputError(f"unobserved={unobserved!r} is not a number above 0. Pass such a number, or 'auto'.")
    if ridge is None:
        raise InputError("ridge=None is for numbers with a posterior. Pass a number ≥ 0, or 'auto'.")
    if item_share != "auto" and not (is_at_least_zero(item_share) and float(item_share) < 1):
        raise InputError(f"item_share={item_share!r} is not a number ≥ 0 and < 1. Pass such a number, or 'auto'.")
    if item_ridge != "auto" and not (is_at_least_zero(item_ridge) and float(item_ridge) > 0):
        raise InputError(f"item_ridge={item_ridge!r} is not a number above 0. Pass such a number, or 'auto'.")
    if not is_count(n_components, 1):
        raise InputError(f"n_components={n_components!r} is not an integer ≥ 1. Pass the number of components.")
