"""How commands end early: on Ctrl-C, on SIGTERM, and when stdout cannot be written to."""

import errno
import io
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType

import click

from bifactor.cli.output import ENDED, FAILED, TERMINATED

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
