"""Executors, which run passes over blocks of observations on this machine or on others."""

from bifactor.executors.dask import Dask
from bifactor.executors.executor import AxpyArray, Block, BlockData, BlockResult, Executor, PassResult, Workspace
from bifactor.executors.remote import RemoteExecutor
from bifactor.executors.streamed import Streamed

__all__ = [
    "AxpyArray",
    "Block",
    "BlockData",
    "BlockResult",
    "Dask",
    "Executor",
    "PassResult",
    "RemoteExecutor",
    "Streamed",
    "Workspace",
]
