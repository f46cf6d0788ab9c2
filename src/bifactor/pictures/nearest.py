"""Filling in pixels by their nearest neighbours."""

from scipy.ndimage import distance_transform_edt

from bifactor.arrays import Array


def nearest(picture: Array, known: Array) -> Array:
    """The picture with each unknown pixel replaced by the nearest known one.

    Parameters
    ----------
    picture : array, H × W × channels
        The picture.
    known : array of bool, H × W
        The mask of known pixels, at least one of which is True.
    """
    places = distance_transform_edt(~known, return_distances=False, return_indices=True)
    return picture[tuple(places)]
