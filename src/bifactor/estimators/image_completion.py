"""Pictures with holes."""

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator

from bifactor.arrays import Array
from bifactor.estimators.shown import Shown, picture_card
from bifactor.kernels.blas_threads import blas_at_most
from bifactor.kernels.threads import threads
from bifactor.pictures.picture import checked, filled
from bifactor.running.progress import share_bar


class ImageCompletion(Shown, BaseEstimator):  # type: ignore[misc]
    """Fills in the holes of a picture: grey, in colour, or with any number of channels.

    A picture is not a matrix of low rank, but groups of its similar patches nearly are. Each patch with a hole is
    completed by the covariance of the patches around that look like it, as the mean of a Gaussian given what is known
    of the patch. Three rounds of this begin with a smooth surface, or with a smaller picture where holes are large.

    It is for missing pixels, scratches, lines, words, and holes of up to some 20 pixels. Larger ones are filled in
    smoothly: it invents no texture.

    Parameters
    ----------
    denoise : bool or float
        Whether known pixels have noise that is to be removed too: True estimates its standard deviation, a number is
        that deviation in the units of the picture. Otherwise known pixels come back bit for bit.
    n_jobs : int, optional
        Threads; -1 for all cores, None for what `bifactor.threads` or the environment says. The answer is the same.
    verbose : int
        1 shows a progress bar.

    Attributes
    ----------
    uncertainty_ : array, of the shape of the picture
        A standard deviation of each filled pixel, 0 where it was known: a picture that shows where guesses
        are rough.

    References
    ----------
    C. Aguerrebere, A. Almansa, J. Delon, Y. Gousseau and P. Musé, A Bayesian hyperprior approach for joint image
    denoising and interpolation, with an application to HDR imaging, IEEE Trans. Computational Imaging 3 (2017), has
    the nearest relative of this method.
    """

    def __init__(self, *, denoise: bool | float = False, n_jobs: int | None = None, verbose: int = 0):
        self.denoise = denoise
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit_transform(self, X: Any, known: Any = None) -> Array:
        """The picture without holes; known pixels are as they were, bit for bit.

        Parameters
        ----------
        X : array, H × W or H × W × channels
            Of integers or floating numbers; NaN, and what a masked array hides, are holes.
        known : array of bool, H × W or that of X, optional
            Where pixels are known; by default everywhere but at NaN. Channels whose holes are in the same places help
            each other.
        """
        picture, mask = checked(X, known)
        with threads(self.n_jobs), blas_at_most(1), share_bar(bool(self.verbose), type(self).__name__) as show:
            whole, doubt = filled(picture, mask, self.denoise, show)
        self.uncertainty_ = doubt.reshape(np.shape(X))
        return whole.reshape(np.shape(X))

    def fit(self, X: Any, known: Any = None) -> Self:
        """As `fit_transform`, for `uncertainty_` alone."""
        self.fit_transform(X, known)
        return self

    def _card(self) -> str:
        return picture_card(self.uncertainty_) if hasattr(self, "uncertainty_") else ""
