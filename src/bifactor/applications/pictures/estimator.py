"""Completion of pictures with missing pixels."""

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator

from bifactor.applications.pictures.completion import fill_picture, validate_picture
from bifactor.arrays import Array
from bifactor.estimators.base import CardMixin, picture_card
from bifactor.kernels.threading import blas_at_most, threads
from bifactor.running.progress import share_bar


class ImageCompletion(CardMixin, BaseEstimator):  # type: ignore[misc]
    """Fills in the holes of a picture: grey, in colour, or with any number of channels.

    A picture does not have low rank, but groups of similar patches nearly do. Each patch with a hole is completed from
    the covariance of similar patches nearby, as the conditional mean of a Gaussian given its known pixels. There are
    three rounds, which start from a smooth surface, or from a smaller picture if holes are large.

    Use it for missing pixels, scratches, lines, text, and holes of up to about 20 pixels. Larger holes are filled in
    smoothly: no texture is invented.

    Parameters
    ----------
    denoise : bool or float
        Whether to remove noise from known pixels too: True estimates its standard deviation, a number is that
        deviation in the units of the picture. By default known pixels are returned unchanged.
    n_jobs : int, optional
        Number of threads; -1 for all cores, None for the setting of `bifactor.threads` or the environment. It does not
        change the result.
    verbose : int
        1 shows a progress bar.

    Attributes
    ----------
    uncertainty_ : array, of the shape of the picture
        Standard deviation of each filled pixel, 0 for known pixels; its size is adjusted to the errors of known pixels
        that are hidden. Infinite if a single floating-point number is known.

    References
    ----------
    C. Aguerrebere, A. Almansa, J. Delon, Y. Gousseau and P. Musé, A Bayesian hyperprior approach for joint image
    denoising and interpolation, with an application to HDR imaging, IEEE Trans. Computational Imaging 3 (2017),
    describes the most closely related method.
    """

    def __init__(self, *, denoise: bool | float = False, n_jobs: int | None = None, verbose: int = 0):
        self.denoise = denoise
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit_transform(self, X: Any, known: Any = None) -> Array:
        """Fill in the holes of a picture; known pixels are unchanged unless `denoise` is set.

        Parameters
        ----------
        X : array, H × W or H × W × channels
            Integers or floating-point numbers; NaN and masked pixels are holes.
        known : array of bool, H × W or the shape of X, optional
            Mask of known pixels; by default all that are not NaN. Channels with holes in the same places are completed
            jointly.
        """
        picture, mask = validate_picture(X, known)
        with threads(self.n_jobs), blas_at_most(1), share_bar(bool(self.verbose), type(self).__name__) as show:
            whole, doubt = fill_picture(picture, mask, self.denoise, show)
        self.uncertainty_ = doubt.reshape(np.shape(X))
        return whole.reshape(np.shape(X))

    def fit(self, X: Any, known: Any = None) -> Self:
        """Run `fit_transform`, for `uncertainty_` alone."""
        self.fit_transform(X, known)
        return self

    def _card(self) -> str:
        return picture_card(self.uncertainty_) if hasattr(self, "uncertainty_") else ""
