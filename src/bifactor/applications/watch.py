"""What follows a workflow: progress, and Ctrl-C in the stages after a fit. By default both are silent."""

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from types import FrameType
from typing import Any, TypeVar

from bifactor.data.text import Progress, silent
from bifactor.running.progress import Stage
from bifactor.running.solve import Callback

T = TypeVar("T")


class FitWatch:
    """Follows one fit; this one shows nothing."""

    stage: Stage | None = None
    """Called with the setting that is being chosen before the iterations."""

    def iterations(self, most: int) -> Callback | None:
        """A callback for at most `most` iterations."""
        return None

    def ended(self, status: Any) -> None:
        """Called with the status of the fit."""


class AfterFit:
    """The stages after a fit: Ctrl-C or SIGTERM ends one of them and leaves out the others, but the fit is kept.

    Before `keep`, and in a stage, a signal raises `KeyboardInterrupt`; at any other time it is only noted. The second
    one after `keep` always raises.
    """

    def __init__(self) -> None:
        self.process = os.getpid()
        self.missing: list[str] = []
        self.ended, self._free = False, True

    def keep(self) -> None:
        """From now on there is a fit to return."""
        self._free = False

    def written(self) -> None:
        """From now on the fit is in its folder, and only its summary may be lost."""

    def note_signal(self, number: int) -> None:
        """Called with a signal that is only noted."""

    def stage(self, what: str, function: Callable[[], T]) -> T | None:
        """The value of a function; None if that, or an earlier stage, was interrupted."""
        if not self.ended:
            try:
                self._free = True
                found = function()
                self._free = False
                return found
            except KeyboardInterrupt:
                self._free, self.ended = False, True
        self.missing.append(what)
        return None

    @property
    def notes(self) -> list[str]:
        """What is missing, as a sentence."""
        return [f"Interrupted, without {', '.join(self.missing)}."] if self.missing else []

    @contextmanager
    def answer_signals(self) -> Iterator["AfterFit"]:
        """Answer signals like this in the main thread; those that are ignored stay so."""
        before = dict[int, Any]()
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                previous = signal.getsignal(number)
                if callable(previous):
                    before[number] = previous
                    signal.signal(number, lambda number, frame: self._answer(number, before[number], frame))
        try:
            yield self
        finally:
            for one, previous in before.items():
                signal.signal(one, previous)

    def _answer(self, number: int, previous: Any, frame: FrameType | None) -> None:
        if self._free or self.ended or os.getpid() != self.process:
            previous(number, frame)
        else:
            self.note_signal(number)
            self.ended = True


class Watch:
    """Follows a workflow; this one shows nothing. The command line has one that shows progress on a terminal."""

    def reading(self, name: str) -> AbstractContextManager[Progress]:
        """Follow the reading of a file, by a function of the bytes read and of all."""
        return nullcontext(silent)

    def fitting(self, what: str, first: str, observations: int = 0) -> AbstractContextManager[FitWatch]:
        """Follow a fit to so many observations; `first` names the stage before the iterations."""
        return nullcontext(FitWatch())

    def share(self, what: str) -> AbstractContextManager[Callable[[float], None]]:
        """Follow work by a function of the share that is done."""
        return nullcontext(lambda share: None)

    def memory(self, needed: int) -> None:
        """Called with the bytes that a fit will take."""

    def after_fit(self) -> AbstractContextManager[AfterFit]:
        """The stages after a fit, and what signals do in them."""
        return AfterFit().answer_signals()


SILENT = Watch()
