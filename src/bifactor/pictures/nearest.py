"""Pixels by their neighbours."""

from scipy.ndimage import distance_transform_edt

from bifactor.arrays import Array


def nearest(picture: Array, known: Array) -> Array:
    """Each pixel that is not known as the known one next to it.

    Parameters
    ----------
    picture : array, H × W × channels
    known : array of bool, H × W
        True somewhere.
    """
    places = distance_transform_edt(~known, return_distances=False, return_indices=True)
    return picture[tuple(places)]
