"""How commands end early: on Ctrl-C, on SIGTERM, and when stdout cannot be written to."""

import errno
import io
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any, TypeVar

import click

from bifactor.cli.output import ENDED, FAILED, INTERRUPTED, TERMINATED, WRITING, WRITTEN

T = TypeVar("T")

REFUSED = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EROFS)
"""Errors of a full or faulty disk."""


@contextmanager
def ended_by_signal(context: click.Context) -> Iterator[None]:
    """Make SIGTERM act like Ctrl-C: the best fit so far is written, and no other files are left behind.

    A process that ignores SIGTERM or has its own handler keeps that behaviour.
    """
    main = threading.current_thread() is threading.main_thread()
    if not main or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield
        return
    process = os.getpid()

    def end(number: int, frame: FrameType | None) -> None:
        if os.getpid() != process:  # a child process has nothing to write
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
        context.meta[ENDED] = TERMINATED
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


class AfterFit:
    """The stages after a fit: Ctrl-C or SIGTERM ends one of them and leaves out the others, but the fit is written.

    Before `keep`, and in a stage, a signal raises `KeyboardInterrupt`; at any other time it is only noted. The second
    one after `keep` always raises.
    """

    def __init__(self) -> None:
        self.context, self.process = click.get_current_context(), os.getpid()
        self.missing: list[str] = []
        self.ended, self._free = False, True

    def keep(self) -> None:
        """From now on there is a fit to write."""
        self._free = False
        self.context.meta[WRITING] = True

    def written(self) -> None:
        """From now on the fit is in its folder, and only its summary may be lost."""
        self.context.meta[WRITTEN] = True

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

    def _end(self, number: int, previous: Any, frame: FrameType | None) -> None:
        if self._free or self.ended or os.getpid() != self.process:
            previous(number, frame)
        else:
            self.context.meta[ENDED] = INTERRUPTED if number == signal.SIGINT else TERMINATED
            self.ended = True


@contextmanager
def after_fit() -> Iterator[AfterFit]:
    """The stages after a fit; signals that are ignored stay so."""
    stages, before = AfterFit(), dict[int, Any]()
    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGINT, signal.SIGTERM):
            previous = signal.getsignal(number)
            if callable(previous):
                before[number] = previous
                signal.signal(number, lambda number, frame: stages._end(number, before[number], frame))
    try:
        yield stages
    finally:
        for one, previous in before.items():
            signal.signal(one, previous)


@contextmanager
def answer_written() -> Iterator[None]:
    """Report errors of writing to stdout in one sentence.

    Characters that stdout cannot encode, as in file names that are not Unicode, are written as escapes.
    """
    if sys.stdout is None:  # closed by the shell
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        try:
            yield
        finally:
            sys.stdout.flush()
    except OSError as error:
        if error.errno not in (*REFUSED, errno.EPIPE):
            raise
        _forget_stdout()
        if error.errno != errno.EPIPE:  # a reader such as head that closes the pipe is not an error
            click.echo(f"Error: The answer was not written: {error.strerror}. Check the free space.", err=True)
        sys.exit(FAILED)


def _forget_stdout() -> None:
    """Discard the buffer of stdout, which Python would try to write once more at exit."""
    with suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
