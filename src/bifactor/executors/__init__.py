"""Executors, which run passes over blocks of observations on this machine or on others."""

from bifactor.executors.dask import Dask
from bifactor.executors.executor import Block, BlockData, BlockResult, Executor, PassResult, Workspace
from bifactor.executors.streamed import Streamed

__all__ = ["Block", "BlockData", "BlockResult", "Dask", "Executor", "PassResult", "Streamed", "Workspace"]
