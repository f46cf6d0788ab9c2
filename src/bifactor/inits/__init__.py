"""Initialisations, which decide where to start: one file per initialisation."""

from bifactor.inits.base import Init
from bifactor.inits.given import Given
from bifactor.inits.random import Random
from bifactor.inits.spectral import Spectral
from bifactor.inits.zero import Zero

__all__ = ["Given", "Init", "Random", "Spectral", "Zero"]
