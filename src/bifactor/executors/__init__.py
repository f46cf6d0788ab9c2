"""Executors, which run passes over blocks of observations on this machine or on others."""

from bifactor.executors.base import Executor, Gathered, Loaded, Part, Passed, Workspace
from bifactor.executors.cluster import Dask
from bifactor.executors.streamed import Streamed

__all__ = ["Dask", "Executor", "Gathered", "Loaded", "Part", "Passed", "Streamed", "Workspace"]
