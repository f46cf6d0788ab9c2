"""Executors, which run passes over blocks of observations on this machine or on others."""

from bifactor.executors.dask import Dask
from bifactor.executors.executor import Executor, Gathered, Loaded, Part, Passed, Workspace
from bifactor.executors.streamed import Streamed

__all__ = ["Dask", "Executor", "Gathered", "Loaded", "Part", "Passed", "Streamed", "Workspace"]
