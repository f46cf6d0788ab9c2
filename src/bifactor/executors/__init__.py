"""Where passes over blocks of observations run: on this machine, or on others."""

from bifactor.executors.base import Executor, Gathered, Loaded, Part, Passed, Workspace
from bifactor.executors.streamed import Streamed

__all__ = ["Executor", "Gathered", "Loaded", "Part", "Passed", "Streamed", "Workspace"]
